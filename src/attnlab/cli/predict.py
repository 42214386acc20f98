"""`attnlab predict RUN`: what a tuned classifier says about texts, and how sure it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError

if TYPE_CHECKING:
    from attnlab.data.tasks.prediction_inputs import Texts
    from attnlab.models.pretrained.tuned import TunedClassifier

FEW = 20  # texts: more are no table
SHOWN_CLASSES = 6


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a classify run, or one that was exported.")],
    text: Annotated[list[str] | None, typer.Option("--text", help="A text; may be given several times.")] = None,
    pair: Annotated[
        list[str] | None, typer.Option("--pair", help="The second text of each --text, if the classifier reads pairs.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="A .txt with a text a line, or CSV, TSV, JSONL, Parquet "
            "with columns as in training; '-', or nothing at all, reads lines from standard input.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write here, not to the screen.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line, all classes in it.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Predict the class of texts: a table of a few on a terminal, else a line each (class, probability, text)."""
    if text and file is not None:
        raise UserError("--text and --file exclude each other: give one of them.")
    if pair and not text:
        raise UserError("--pair is the second text of a --text: give that too.")
    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(f"--out: there is no folder {out.parent}.")
    from attnlab.models.pretrained.tuned import load_trained

    with console.working("loading the classifier ..."):
        trained = load_trained(run, device)
    texts, where = _read(trained, text or [], pair or [], file)
    encoded = trained.encode(texts.examples, where)
    if encoded.cut:
        what = "pairs are longer, and their second text was" if trained.paired else "texts are longer and were"
        console.warn(
            f"the classifier reads {trained.longest} tokens: {encoded.cut:,} of {len(encoded.rows):,} {what} cut."
        )
    with console.working("predicting ..."):
        logits = trained.logits(encoded)
    found = [
        _said(trained, example, row) for example, row in zip(texts.examples, logits.softmax(-1).tolist(), strict=True)
    ]
    if out is not None:
        from attnlab.base.files import write_text

        write_text(out, "".join(_lines(found, as_json)))
        console.result(f"predictions: {out} ({len(found):,} lines)")
    elif not as_json and len(found) <= FEW and console.out.is_terminal:
        console.result(_table(found, trained.classes))
    else:
        sys.stdout.writelines(_lines(found, as_json))
    if texts.labelled:
        _score(found, to_screen=out is not None)


def _read(trained: TunedClassifier, texts: list[str], pairs: list[str], file: Path | None) -> tuple[Texts, str]:
    """The texts, and how to begin a sentence about one of them."""
    from attnlab.data.tasks.catalog import TASKS
    from attnlab.data.tasks.prediction_inputs import from_arguments, from_file, from_lines

    if texts:
        return from_arguments(texts, pairs, trained.paired), "--text, "
    if file is None or str(file) == "-":
        stream = typer.get_text_stream("stdin", encoding="utf-8")
        if stream.isatty():
            console.say(f"one {'pair, separated by a tab,' if trained.paired else 'text'} a line; Ctrl-D ends it.")
        try:
            content = stream.read()
        except UnicodeDecodeError:
            raise UserError("standard input is not UTF-8.") from None
        if not content.strip():
            raise UserError("there is nothing to predict: give --text, --file or lines on standard input.")
        return from_lines(content, "standard input", trained.paired), "standard input, "
    task = TASKS.get(trained.config.data.task)
    return from_file(file, trained.classes, trained.columns, task.clean if task else str), f"{file}, "


def _said(trained: TunedClassifier, example: Any, probabilities: list[float]) -> dict[str, Any]:
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    found = {"text": example.text} | ({"pair": example.pair} if example.pair is not None else {})
    if example.label >= 0:
        found["label"] = trained.classes[example.label]
    shares = {name: round(share, 6) for name, share in zip(trained.classes, probabilities, strict=True)}
    return found | {
        "said": trained.classes[best],
        "probability": shares[trained.classes[best]],
        "probabilities": shares,
    }


def _lines(found: list[dict[str, Any]], as_json: bool) -> Iterator[str]:
    for row in found:
        if as_json:
            yield json.dumps(row, ensure_ascii=False) + "\n"
        else:
            text = " ".join(f"{row['text']} {row.get('pair', '')}".split())
            yield f"{row['said']}\t{row['probability']:.4f}\t{text}\n"


def _table(found: list[dict[str, Any]], classes: tuple[str, ...]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = classes if len(classes) <= SHOWN_CLASSES else ()
    table.add_column("text", overflow="ellipsis", no_wrap=True, ratio=1)
    for title in ("class", "probability", *shown):
        table.add_column(title, justify="left" if title == "class" else "right", no_wrap=True)
    for row in found:
        text = " | ".join(" ".join(row[part].split()) for part in ("text", "pair") if part in row)
        shares = [f"{row['probabilities'][name]:.1%}" for name in shown]
        table.add_row(*map(Text, (text, row["said"], f"{row['probability']:.1%}", *shares)))
    return table


def _score(found: list[dict[str, Any]], to_screen: bool) -> None:
    """Beside predictions on standard output, the score is a remark: who reads them wants nothing else there."""
    from attnlab.stats.intervals import Proportion

    right = Proportion(sum(row["label"] == row["said"] for row in found), len(found))
    (console.result if to_screen else console.say)(f"accuracy: {right}, n = {len(found):,}")


def register(app: typer.Typer) -> None:
    app.command()(predict)
