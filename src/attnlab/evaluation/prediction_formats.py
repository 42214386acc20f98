"""Predictions as a file of the format that its ending names: CSV, TSV, JSONL, Parquet, or lines as on a terminal."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import sync
from attnlab.base.leftovers import temporary
from attnlab.data.tasks.spreadsheet import guarded

ALL_CLASSES = "probabilities"
AT_ONCE = 2_048
Row = Mapping[str, Any]
Rows = Callable[[], Iterator[Row]]


def check_format(ending: str) -> None:
    if ending not in FORMATS:
        raise UserError(f"--out: expected a file that ends in {', '.join(FORMATS)}, got {ending or 'no ending'!r}.")


def write_rows(path: Path, rows: Rows, ending: str) -> None:
    """Write the file whole: under a temporary name, renamed at the end."""
    partial = temporary(path)
    try:
        FORMATS[ending](partial, rows)
        sync(partial)
        os.replace(partial, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}.") from None
    finally:
        partial.unlink(missing_ok=True)


def text_line(row: Row) -> str:
    """For a reader: class, probability and text on one line, what a terminal would obey made visible."""
    text = " ".join(f"{row['text']} {row.get('pair', '')}".split())
    return console.visible(f"{row['predicted']}\t{row['probability']:.4f}\t{text}\n")


def _columns(rows: Iterable[Row]) -> list[str]:
    """All names of fields, in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row if not name.startswith(ALL_CLASSES)))


def _separated(separator: str) -> Callable[[Path, Rows], None]:
    def write(path: Path, rows: Rows) -> None:
        columns = _columns(rows())
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            writer = csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([guarded(_cell(row.get(name))) for name in columns] for row in rows())

    return write


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(line: Callable[[Row], str]) -> Callable[[Path, Rows], None]:
    def write(path: Path, rows: Rows) -> None:
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            _write_all(file, map(line, rows()))

    return write


def _write_all(file: IO[str], lines: Iterable[str]) -> None:
    file.writelines(lines)


def _parquet(path: Path, rows: Rows) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError("a Parquet file needs pyarrow: pip install pyarrow.") from None
    try:
        kinds = [pyarrow.Table.from_pylist(part).schema for part in _parts(rows())]
        schema = pyarrow.unify_schemas(kinds, promote_options="permissive")
        with parquet.ParquetWriter(path, schema) as writer:
            for part in _parts(rows()):
                writer.write_table(pyarrow.Table.from_pylist(part, schema=schema))
    except pyarrow.ArrowException:
        raise UserError(f"{path.name}: a column has values of several kinds: write .jsonl instead.") from None


def _parts(rows: Iterator[Row]) -> Iterator[Sequence[dict[str, Any]]]:
    """Without the probabilities of all classes, which would be a column for each."""
    while part := list(islice(rows, AT_ONCE)):
        columns = _columns(part)
        yield [{name: row.get(name) for name in columns} for row in part]


FORMATS: dict[str, Callable[[Path, Rows], None]] = {
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".jsonl": _lines(console.json_line),
    ".json": _lines(console.json_line),
    ".parquet": _parquet,
    ".txt": _lines(text_line),
}
