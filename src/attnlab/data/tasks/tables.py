"""Files of rows (CSV, TSV, JSONL, JSON, Parquet), each row with its line number, and which column is what.

A CSV has commas and may have quoted fields, over several lines if need be. In a TSV a quote is a character of the
text. A JSONL has one object per line; a file that ends in .json has that, or a list of objects.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base.errors import UserError
from attnlab.base.files import read_text
from attnlab.data.text.reading import numbered_lines

PAIRS = (
    ("question", "passage"),
    ("question", "context"),
    ("question", "sentence"),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("text", "pair"),
)
TEXTS = (
    "text",
    "sentence",
    "review",
    "comment",
    "content",
    "tweet",
    "message",
    "snippet",
    "body",
    "document",
    "question",
    "title",
)
LABELS = (
    "label",
    "labels",
    "class",
    "target",
    "stars",
    "answer",
    "sentiment",
    "category",
    "rating",
    "gold_label",
    "polarity",
    "is_duplicate",
)
SPLIT = "split"
_USUAL = {name for pair in PAIRS for name in pair} | {*TEXTS, *LABELS, SPLIT}


@dataclass(frozen=True)
class ColumnRequest:
    """The columns and classes a user names; None means: find it."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    classes: tuple[str, ...] = ()
    """Names of the classes, in order."""
    header: bool | None = None
    allow_empty: bool = False
    """Whether a text may be empty."""


class Columns(NamedTuple):
    """The names of the columns of a file."""

    text: str
    label: str
    pair: str | None

    def __str__(self) -> str:
        pair = f", pair from {self.pair!r}" if self.pair else ""
        return f"text from column {self.text!r}{pair}, label from {self.label!r}"


def is_header(cells: Sequence[str], request: ColumnRequest) -> bool:
    """Whether a first row names columns: one of its cells is a usual column name or one the user gave."""
    if request.header is not None:
        return request.header
    requested = {name for name in (request.text, request.pair, request.label) if name and not name.isdecimal()}
    return any(cell.strip().lower() in _USUAL or cell.strip() in requested for cell in cells)


def choose_columns(table: FileTable, request: ColumnRequest) -> Columns:
    """The columns of a file; raises where the names do not decide."""
    for name in (request.text, request.pair, request.label):
        if name is not None and name not in table.columns:
            raise UserError(f"{table.path} has no column {name!r}: its columns are {', '.join(table.columns)}.")
    named = {name.lower(): name for name in table.columns}
    text, label, pair = request.text, request.label, request.pair
    if label is None:
        label = next((named[name] for name in LABELS if name in named and named[name] not in (text, pair)), None)
    if text is None and pair is None:
        both = next((couple for couple in PAIRS if set(couple) <= named.keys() - {str(label).lower()}), None)
        text, pair = (named[both[0]], named[both[1]]) if both else (None, None)
    if text is None:
        text = next((named[name] for name in TEXTS if name in named and named[name] not in (label, pair)), None)
    return _fill(table, text, label, pair)


def _fill(table: FileTable, text: str | None, label: str | None, pair: str | None) -> Columns:
    """Fill in a missing column where only one is left; of two unnamed columns the label has fewer different values."""
    left = [name for name in table.columns if name not in (text, label, pair) and name.lower() != SPLIT]
    if text is None and label is None and not table.named and len(left) == 2 and pair is None:
        kinds = [len({row.fields[name] for row in table.rows}) for name in left]
        if kinds[0] != kinds[1]:
            label, text = (left[0], left[1]) if kinds[0] < kinds[1] else (left[1], left[0])
    elif len(left) == 1 and (text is None) != (label is None):
        text, label = text or left[0], label or left[0]
    if text is None or label is None:
        what, flag = ("text", "--text") if text is None else ("label", "--label")
        raise UserError(
            f"{table.path}: no column is clearly the {what} among {', '.join(table.columns)}: name it with {flag}."
        )
    return Columns(text, label, pair)


def choose_text_columns(table: FileTable, trained: Columns | None) -> tuple[str, str | None, str | None]:
    """Text, pair and label columns of a file to predict: the names used in training, else usual names.

    The label may be missing. `trained` are the columns of the training file; with a pair if the classifier reads pairs.
    """
    named = {name.lower(): name for name in table.columns}
    label = trained.label if trained is not None and trained.label in table.columns else None
    if label is None:
        label = next((named[name] for name in LABELS if name in named), None)
    if (
        trained is not None
        and {trained.text, trained.pair or trained.text} <= set(table.columns)
        and trained.text != label
    ):
        return trained.text, trained.pair, label
    if trained is not None and trained.pair is not None:
        both = next((couple for couple in PAIRS if set(couple) <= named.keys()), None)
        if both is None:
            raise UserError(
                f"{table.path} has no columns {trained.text!r} and {trained.pair!r}, which the classifier reads: "
                f"its columns are {', '.join(table.columns)}."
            )
        return named[both[0]], named[both[1]], label if label not in (named[both[0]], named[both[1]]) else None
    text = next((named[name] for name in TEXTS if name in named and named[name] != label), None)
    left = [name for name in table.columns if name != label and name.lower() != SPLIT]
    if text is None and len(left) == 1:
        text = left[0]
    if text is None:
        raise UserError(
            f"{table.path}: no column is clearly the text among {', '.join(table.columns)}: name it "
            f"{trained.text if trained and not trained.text.isdecimal() else 'text'!r} in a first row."
        )
    return text, None, label


FORMATS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")


class FileRow(NamedTuple):
    line: int
    fields: dict[str, Any]


class FileTable(NamedTuple):
    path: Path
    columns: list[str]
    rows: list[FileRow]
    named: bool
    """Whether the file names its columns; if not, they are called 1, 2, ..."""

    def where(self, row: FileRow) -> str:
        return f"{self.path}, {'row' if self.path.suffix in ('.parquet', '.json') else 'line'} {row.line}"


def read_table(path: Path, request: ColumnRequest, least: int = 2) -> FileTable:
    """All rows of a file, of `least` columns or more, in the format of its extension."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise UserError(f"{path} ends in {ending or 'nothing'}: expected {', '.join(FORMATS)}.")
    if ending == ".parquet":
        return _parquet(path)
    text = read_text(path)
    if "\0" in text:
        raise UserError(f"{path} is a binary file: give rows of text in UTF-8.")
    if ending == ".json" and text.lstrip().startswith("["):
        return _json(path, text)
    if ending in (".jsonl", ".json"):
        return _jsonl(path, text)
    return _fields(path, _csv_lines(path, text) if ending == ".csv" else _tsv_lines(text), request, least)


def _tsv_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split("\t")) for number, line in numbered_lines(text))


def _csv_lines(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # allow long texts
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    start = 1
    try:
        for cells in reader:
            if cells:
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {start} is not a row of a CSV ({error}): check its quotes.") from None


def _fields(path: Path, lines: Iterator[tuple[int, list[str]]], request: ColumnRequest, least: int) -> FileTable:
    (first, cells), *others = lines
    if len(cells) < least:
        raise UserError(
            f"{path}, line {first} has one column, expected at least two (text and label): "
            "a .csv is separated by commas, a .tsv by tabs."
        )
    named = is_header(cells, request)
    columns = [cell.strip() for cell in cells] if named else [str(place + 1) for place in range(len(cells))]
    if len(set(columns)) < len(columns):
        raise UserError(f"{path}, line {first} names a column twice ({', '.join(columns)}): rename one.")
    rows = []
    for line, values in others if named else [(first, cells), *others]:
        if len(values) != len(columns):
            quote = "; quote fields that contain commas" if path.suffix.lower() == ".csv" else ""
            raise UserError(
                f"{path}, line {line} has {len(values)} fields, expected {len(columns)} as in line {first}{quote}."
            )
        rows.append(FileRow(line, dict(zip(columns, values, strict=True))))
    if not rows:
        raise UserError(f"{path} has no rows below its header: give at least one.")
    return FileTable(path, columns, rows, named)


def _jsonl(path: Path, text: str) -> FileTable:
    rows = []
    for number, line in numbered_lines(text):
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}, line {number} is broken JSON (column {error.colno}: {error.msg}).") from None
        except RecursionError:
            raise UserError(f"{path}, line {number} is JSON nested too deeply to be a row.") from None
        if not isinstance(fields, dict):
            raise UserError(
                f'{path}, line {number} is not a JSON object: give {{"text": ..., "label": ...}} on each line.'
            )
        rows.append(FileRow(number, fields))
    return FileTable(path, list(rows[0].fields), rows, named=True)


def _json(path: Path, text: str) -> FileTable:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno} is broken JSON (column {error.colno}: {error.msg}).") from None
    except RecursionError:
        raise UserError(f"{path} is JSON nested too deeply to be rows.") from None
    if not found or not all(isinstance(fields, dict) for fields in found):
        raise UserError(f'{path} is not a list of objects: give [{{"text": ..., "label": ...}}, ...].')
    return FileTable(
        path, list(found[0]), [FileRow(number, fields) for number, fields in enumerate(found, start=1)], named=True
    )


def _parquet(path: Path) -> FileTable:
    if not path.is_file():
        raise UserError(f"{path} does not exist: check the name.")
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{path} is a Parquet file, which needs pyarrow: pip install pyarrow.") from None
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        raise UserError(f"{path} cannot be read as Parquet: {reason}.") from None
    rows = [FileRow(number, fields) for number, fields in enumerate(table.to_pylist(), start=1)]
    if not rows:
        raise UserError(f"{path} is empty: give at least one row.")
    return FileTable(path, list(table.column_names), rows, named=True)
