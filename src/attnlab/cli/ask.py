"""`attnlab ask RUN "Where was X born?"`: put a question to a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from attnlab.base import console
from attnlab.cli.evaluate import AbstainBelow, Corpus, check_share
from attnlab.cli.help import example

if TYPE_CHECKING:
    from attnlab.evaluation.sources import Background


def ask(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a fine-tuned run.")],
    question: Annotated[
        str | None, typer.Argument(help="The question; without it, questions are read line by line.")
    ] = None,
    abstain_below: AbstainBelow = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print the lines of pretraining that name the person.")
    ] = False,
    corpus: Corpus = None,
) -> None:
    """Ask a fine-tuned model; it answers with its confidence, the probability it gives to its answer."""
    check_share("--abstain-below", abstain_below)
    from attnlab.base.errors import UserError
    from attnlab.evaluation.sources import background
    from attnlab.models.asking import answer, check_length
    from attnlab.models.loading import load_gpt

    if corpus is not None and not trace:
        raise UserError("--corpus is where --trace looks: give --trace as well.")
    trained = load_gpt(run)
    model, vocabulary = trained.model, trained.vocabulary
    known = background(run, corpus) if trace else None
    for note in known.notes if known else []:
        console.warn(note)

    def reply(text: str) -> None:
        check_length(text, vocabulary, model.shape.context, "the question")
        said = answer(model, vocabulary, [text])[0]
        shown = escape(said.unless_below(abstain_below or 0.0))
        console.result(f"{shown}  (confidence {said.confidence:.2f})")
        unknown = vocabulary.unknown_share(text)
        if unknown:
            console.warn(f"{unknown:.0%} of the question is not in the model's vocabulary.")
        if known is not None:
            _show(known, text, said.text)

    if question is not None:
        reply(question)
        return
    stream = typer.get_text_stream("stdin")
    console.say("one question a line; an empty line ends it.")
    while line := stream.readline().strip():
        try:
            reply(line)
        except UserError as error:
            console.fail(str(error))


def _show(known: Background, question: str, said: str) -> None:
    """The lines that name the person, those with the answer marked."""
    from attnlab.evaluation.trace import MADE_UP, NEVER_NAMED, RETRIEVED

    name = known.template.name(question)
    if known.reading is None:
        return  # a note has said why
    if name is None:
        console.warn(f"no name to look for: training questions have the form {known.template.ask('…')!r}.")
        return
    trace = known.reading.trace(name, said)
    meaning = {
        RETRIEVED: f"{said!r} stands in a line that names {name}",
        MADE_UP: f"no line that names {name} holds {said!r}",
        NEVER_NAMED: f"no line names {name}",
    }
    console.result(escape(f"{trace.kind}: {meaning[trace.kind]}."))
    for line in trace.lines:
        mark = "*" if line.number in trace.holding else " "
        console.result(escape(f"{mark} line {line.number}: {line.text}"))


def register(app: typer.Typer) -> None:
    app.command(epilog=example('attnlab ask runs/my-finetuning "Where was Ada Lovelace born?"'))(ask)
