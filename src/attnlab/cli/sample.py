"""`attnlab sample RUN`: text from a trained language model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.cli.help import example

if TYPE_CHECKING:
    from attnlab.models.sampling import Sample


def sample(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a language, pretrain, finetune or knowledge run.")
    ],
    prompt: Annotated[
        str, typer.Option(help="Text to continue (default: the first token of a line of the training text).")
    ] = "",
    length: Annotated[int, typer.Option(metavar="N", help="Tokens per sample; may exceed the context.")] = 200,
    number: Annotated[int, typer.Option(metavar="N", min=1, help="Number of samples.")] = 1,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="1 draws as the model predicts, less is safer, 0 takes the best token.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Draw among the K most probable tokens.")] = None,
    top_p: Annotated[
        float | None,
        typer.Option(metavar="P", help="Draw among the fewest tokens that together have the probability P."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same samples.")] = 0,
    context: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens to read at once (default: as many as in training).")
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN", help="End a sample before this token (default: ⁇, where it ends the training texts)."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per sample: prompt, text, tokens, log-probabilities.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to this file, not to standard output.")
    ] = None,
) -> None:
    """Let a trained GPT write.

    One sample is printed while it is decoded. Past the context the last half of it is read again, with positions
    from 0.
    """
    from attnlab.api.run import Run
    from attnlab.evaluation.files import check_writable, write_file

    if out is not None:
        check_writable(out, "--out")
    drawing: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    drawing |= {"context": context, "stop": stop}
    if number == 1 and not as_json and out is None:
        pieces = Run(run).stream(prompt, length, **drawing)
        try:
            for piece in pieces:
                sys.stdout.write(console.visible(piece))
                sys.stdout.flush()
        finally:
            sys.stdout.write("\n")  # also after Ctrl-C
        return
    samples = Run(run).samples(prompt, number, length, **drawing)
    lines = list(_json_lines(samples, seed) if as_json else _printed(samples))
    if out is None:
        sys.stdout.writelines(lines)
    else:
        write_file(out, "".join(lines))
        console.result(f"samples: {out} ({number})")


def _printed(samples: list[Sample]) -> Iterator[str]:
    for number, each in enumerate(samples, start=1):
        if len(samples) > 1:
            yield f"--- {number} of {len(samples)} ---\n"
        yield console.visible(each.prompt + each.text) + "\n"


def _json_lines(samples: list[Sample], seed: int) -> Iterator[str]:
    for number, each in enumerate(samples):
        values: dict[str, Any] = {"prompt": each.prompt, "text": each.text, "seed": seed, "number": number}
        values |= {"log_probability": each.log_probability, "tokens": each.tokens}
        yield console.json_line(values | {"log_probabilities": each.log_probabilities})


def register(app: typer.Typer) -> None:
    app.command(epilog=example('attnlab sample runs/my-language --prompt "The " --top-p 0.9'))(sample)
