"""A file of rows: CSV, TSV, JSONL, JSON or Parquet, each row with the line it stands on.

A CSV has commas and may have quoted fields, over several lines if need be. A TSV is read as it stands: a quote
is a character of the text. A JSONL has an object a line; a file that ends in .json has that, or a list of objects.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base.errors import UserError
from attnlab.data.tasks.columns import Request, is_header
from attnlab.data.text.lines import numbered_lines, read_text

FORMATS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")


class Row(NamedTuple):
    line: int
    fields: dict[str, Any]


class Table(NamedTuple):
    path: Path
    columns: list[str]
    rows: list[Row]
    named: bool
    """Whether the file names its columns; if not, they are called 1, 2, ..."""

    def where(self, row: Row) -> str:
        return f"{self.path}, {'row' if self.path.suffix in ('.parquet', '.json') else 'line'} {row.line}"


def read_table(path: Path, request: Request, least: int = 2) -> Table:
    """All rows of a file, of `least` columns or more, in the format that its name's ending says."""
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise UserError(f"{path} ends in {ending or 'nothing'}: give a file that ends in {', '.join(FORMATS)}.")
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
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a long text is no error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    start = 1
    try:
        for cells in reader:
            if cells:
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {start} is no row of a CSV ({error}): check its quotes.") from None


def _fields(path: Path, lines: Iterator[tuple[int, list[str]]], request: Request, least: int) -> Table:
    (first, cells), *others = lines
    if len(cells) < least:
        raise UserError(
            f"{path}, line {first} has one column only: a .csv is separated by commas, a .tsv by tabs, "
            "and a text and its label are two columns."
        )
    named = is_header(cells, request)
    columns = [cell.strip() for cell in cells] if named else [str(place + 1) for place in range(len(cells))]
    if len(set(columns)) < len(columns):
        raise UserError(f"{path}, line {first} names a column twice ({', '.join(columns)}): rename one.")
    rows = []
    for line, values in others if named else [(first, cells), *others]:
        if len(values) != len(columns):
            quote = "; quote fields that contain commas" if path.suffix.lower() == ".csv" else ""
            raise UserError(f"{path}, line {line} has {len(values)} fields, line {first} has {len(columns)}{quote}.")
        rows.append(Row(line, dict(zip(columns, values, strict=True))))
    if not rows:
        raise UserError(f"{path} is empty below its header: give at least one row.")
    return Table(path, columns, rows, named)


def _jsonl(path: Path, text: str) -> Table:
    rows = []
    for number, line in numbered_lines(text):
        try:
            fields = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}, line {number} is broken JSON (column {error.colno}: {error.msg}).") from None
        except RecursionError:
            raise UserError(f"{path}, line {number} is JSON nested too deeply to be a row.") from None
        if not isinstance(fields, dict):
            raise UserError(f'{path}, line {number} is no JSON object: give {{"text": ..., "label": ...}} a line.')
        rows.append(Row(number, fields))
    return Table(path, list(rows[0].fields), rows, named=True)


def _json(path: Path, text: str) -> Table:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno} is broken JSON (column {error.colno}: {error.msg}).") from None
    except RecursionError:
        raise UserError(f"{path} is JSON nested too deeply to be rows.") from None
    if not found or not all(isinstance(fields, dict) for fields in found):
        raise UserError(f'{path} is no list of objects: give [{{"text": ..., "label": ...}}, ...].')
    return Table(
        path, list(found[0]), [Row(number, fields) for number, fields in enumerate(found, start=1)], named=True
    )


def _parquet(path: Path) -> Table:
    if not path.is_file():
        raise UserError(f"{path} does not exist: check the name.")
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{path} is a Parquet file, which needs a package: pip install pyarrow.") from None
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        raise UserError(f"{path} cannot be read as Parquet: {reason}.") from None
    rows = [Row(number, fields) for number, fields in enumerate(table.to_pylist(), start=1)]
    if not rows:
        raise UserError(f"{path} is empty: give at least one row.")
    return Table(path, list(table.column_names), rows, named=True)
