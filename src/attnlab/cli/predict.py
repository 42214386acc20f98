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
            "--out",
            metavar="FILE",
            help="Write to this file, not to standard output: .csv, .tsv, .jsonl, .parquet or .txt. If it is stopped, "
            "the same command continues.",
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep all columns of --file in --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
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
    from attnlab.data.tasks.prediction_inputs import Given
    from attnlab.evaluation.predicting import prediction
    from attnlab.evaluation.prediction_formats import text_line, write_rows
    from attnlab.models.pretrained.tuned import load_trained

    if keep and (out is None or file is None or str(file) == "-"):
        raise UserError("--keep keeps the columns of a file in another: give --file and --out.")
    form = _check_out(out, overwrite, as_json) if out is not None else ""
    with console.working("loading the classifier ..."):
        trained = load_trained(run, device)
    if out is not None and file is not None and str(file) != "-":
        _predict_file(trained, file, out, keep, form)
        return
    texts, where = _read(trained, text or [], pair or [], file)
    encoded = trained.encode(texts.examples, where)
    _warn_of_cuts(trained, encoded.cut, len(texts.examples))
    with console.working("predicting ..."):
        logits = trained.logits(encoded)
    predictions = [
        prediction(trained.classes, Given(example, {}), row, example.label >= 0)
        for example, row in zip(texts.examples, logits.softmax(-1).tolist(), strict=True)
    ]
    if out is not None:
        write_rows(out, lambda: iter(predictions), form)
        console.result(f"predictions: {out} ({len(predictions):,} lines)")
    elif not as_json and len(predictions) <= FEW and console.out.is_terminal:
        console.result(_table(predictions, trained.classes))
    else:
        sys.stdout.writelines(map(console.json_line if as_json else text_line, predictions))
    labelled = [row for row in predictions if row.get("label")]
    if labelled:
        _print_accuracy(sum(row["label"] == row["predicted"] for row in labelled), len(labelled), out is not None)


def _check_out(out: Path, overwrite: bool, as_json: bool) -> str:
    """The ending that names the format; raises, before any work is done, where nothing could be written."""
    from attnlab.evaluation.files import check_writable
    from attnlab.evaluation.predicting import check_target
    from attnlab.evaluation.prediction_formats import check_format

    check_writable(out, "--out")
    ending = out.suffix.lower()
    if as_json and ending in (".csv", ".tsv", ".parquet"):
        raise UserError(f"--json and --out {out} contradict each other: give a .jsonl, or leave out --json.")
    check_format(form := ".jsonl" if as_json else ending)
    if out.exists() and not overwrite:
        raise UserError(f"{out} exists: give another name, or replace it with --overwrite.")
    check_target(out)
    return form


def _predict_file(trained: TunedClassifier, file: Path, out: Path, keep: bool, form: str) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    from attnlab.evaluation.predicting import predict_file

    with console.working("looking at all rows ..."):
        given = trained.open(file)
    if keep and form == ".txt":
        raise UserError("--keep keeps columns, and a .txt has none: give --out a .csv, .tsv, .jsonl or .parquet.")
    quiet = not console.err.is_terminal or console.verbosity() <= console.Verbosity.QUIET
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console.err, disable=quiet) as bar:
        task = bar.add_task("predicting", total=given.count)
        written = predict_file(trained, given, out, keep, form, lambda rows: bar.update(task, completed=rows))
    if written.resumed:
        console.say(f"continued after the {written.resumed:,} rows that were predicted before.")
    _warn_of_cuts(trained, written.cut, written.count)
    console.result(f"predictions: {out} ({written.count:,} lines)")
    if written.labelled:
        _print_accuracy(written.right, written.labelled, is_result=True)


def _warn_of_cuts(trained: TunedClassifier, cut: int, count: int) -> None:
    if cut:
        what = "pairs are longer, and their second text was" if trained.paired else "texts are longer and were"
        console.warn(f"the classifier reads {trained.longest} tokens: {cut:,} of {count:,} {what} cut.")


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


def _print_accuracy(right: int, count: int, is_result: bool) -> None:
    """As a result, or as a remark where standard output is for the predictions alone."""
    from attnlab.stats.intervals import Proportion

    (console.result if is_result else console.say)(f"accuracy: {Proportion(right, count)}, n = {count:,}")


def register(app: typer.Typer) -> None:
    app.command(epilog=example('attnlab predict runs/my-classifier --text "A fine film."'))(predict)
