"""`attnlab predict RUN`: the class of texts by a tuned classifier, with its probability."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.cli.help import example

if TYPE_CHECKING:
    from attnlab.data.tasks.prediction_inputs import Texts
    from attnlab.models.pretrained.tuned import TunedClassifier

FEW = 20  # texts in a table; more are printed as lines
SHOWN_CLASSES = 6


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a classify run, or of an export.")],
    text: Annotated[list[str] | None, typer.Option("--text", help="A text; may be repeated.")] = None,
    pair: Annotated[
        list[str] | None, typer.Option("--pair", help="The second text of each --text, if the classifier reads pairs.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="A .txt with one text per line, or CSV, TSV, JSONL, Parquet "
            "with columns as in training; '-', or no option at all, reads lines from standard input.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write to this file, not to standard output: .csv, .tsv, .jsonl or .txt."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with all classes.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Predict the class of texts.

    A few texts are shown as a table on a terminal; otherwise one line per text: class, probability, text.
    """
    if text and file is not None:
        raise UserError("--text and --file exclude each other: give one of them.")
    if pair and not text:
        raise UserError("--pair needs --text: it is the second text of a pair.")
    from attnlab.evaluation.files import check_writable, write_file
    from attnlab.models.pretrained.tuned import load_trained

    if out is not None:
        check_writable(out, "--out")
        if as_json and out.suffix.lower() == ".csv":
            raise UserError(f"--json and --out {out} contradict each other: give a .jsonl, or leave out --json.")

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
    predictions = [
        _prediction(trained, example, row)
        for example, row in zip(texts.examples, logits.softmax(-1).tolist(), strict=True)
    ]
    if out is not None:
        write_file(out, _file_text(predictions, ".jsonl" if as_json else out.suffix.lower()))
        console.result(f"predictions: {out} ({len(predictions):,} lines)")
    elif not as_json and len(predictions) <= FEW and console.out.is_terminal:
        console.result(_table(predictions, trained.classes))
    else:
        sys.stdout.writelines(map(console.json_line if as_json else _line, predictions))
    if texts.labelled:
        _print_accuracy(predictions, is_result=out is not None)


def _read(trained: TunedClassifier, texts: list[str], pairs: list[str], file: Path | None) -> tuple[Texts, str]:
    """The texts, and where they are from: the first words of a message about one of them."""
    from attnlab.data.tasks.prediction_inputs import from_arguments, from_lines

    if texts:
        return from_arguments(texts, pairs, trained.paired), "--text, "
    if file is None or str(file) == "-":
        stream = typer.get_text_stream("stdin", encoding="utf-8")
        if stream.isatty():
            console.say(
                f"one {'pair, separated by a tab,' if trained.paired else 'text'} per line; Ctrl-D ends the input."
            )
        try:
            content = stream.read()
        except UnicodeDecodeError:
            raise UserError("standard input is not UTF-8.") from None
        if not content.strip():
            raise UserError("nothing to predict: give --text, --file or lines on standard input.")
        return from_lines(content, "standard input", trained.paired), "standard input, "
    return trained.read(file), f"{file}, "


def _prediction(trained: TunedClassifier, example: Any, probabilities: list[float]) -> dict[str, Any]:
    best = max(range(len(probabilities)), key=probabilities.__getitem__)
    given = {"text": example.text} | ({"pair": example.pair} if example.pair is not None else {})
    if example.label >= 0:
        given["label"] = trained.classes[example.label]
    shares = {name: round(share, 6) for name, share in zip(trained.classes, probabilities, strict=True)}
    return given | {
        "predicted": trained.classes[best],
        "probability": shares[trained.classes[best]],
        "probabilities": shares,
    }


def _line(row: dict[str, Any]) -> str:
    """For a reader: on one line, and with what a terminal would obey made visible."""
    text = " ".join(f"{row['text']} {row.get('pair', '')}".split())
    return console.visible(f"{row['predicted']}\t{row['probability']:.4f}\t{text}\n")


def _file_text(predictions: list[dict[str, Any]], ending: str) -> str:
    """In .csv and .jsonl every text is as it was given; other files have one line per text, as on a terminal."""
    if ending in (".json", ".jsonl"):
        return "".join(map(console.json_line, predictions))
    if ending == ".csv":
        from attnlab.data.tasks.spreadsheet import csv_text

        columns = [name for name in predictions[0] if name != "probabilities"]
        return csv_text(columns, ([row[name] for name in columns] for row in predictions))
    return "".join(map(_line, predictions))


def _table(predictions: list[dict[str, Any]], classes: tuple[str, ...]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = classes if len(classes) <= SHOWN_CLASSES else ()
    table.add_column("text", overflow="ellipsis", no_wrap=True, ratio=1)
    for title in ("class", "probability", *shown):
        table.add_column(title, justify="left" if title == "class" else "right", no_wrap=True)
    for row in predictions:
        text = " | ".join(" ".join(row[part].split()) for part in ("text", "pair") if part in row)
        shares = [f"{row['probabilities'][name]:.1%}" for name in shown]
        table.add_row(*map(console.cell, (text, row["predicted"], f"{row['probability']:.1%}", *shares)))
    return table


def _print_accuracy(predictions: list[dict[str, Any]], is_result: bool) -> None:
    """As a result, or as a remark where standard output is for the predictions alone."""
    from attnlab.stats.intervals import Proportion

    accuracy = Proportion(sum(row["label"] == row["predicted"] for row in predictions), len(predictions))
    (console.result if is_result else console.say)(f"accuracy: {accuracy}, n = {len(predictions):,}")


def register(app: typer.Typer) -> None:
    app.command(epilog=example('attnlab predict runs/my-classifier --text "A fine film."'))(predict)
