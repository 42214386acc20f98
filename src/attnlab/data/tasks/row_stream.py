"""The rows of a file one after the other: what is held in memory does not grow with the file.

The layout, the header and the columns are decided on the beginning of the file, as `read_table` decides them on all of
it. A JSON document, which is one value, is read whole.
"""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from attnlab.base.errors import UserError
from attnlab.data.tasks import parquet
from attnlab.data.tasks.decode import GZIP_MAGIC, MOST_UNPACKED, decode, decoded_lines
from attnlab.data.tasks.json_rows import one_object_per_line, row_of_line
from attnlab.data.tasks.layout import SAMPLE, find_layout, rows_in
from attnlab.data.tasks.read_table import NO_TEXTS, PARQUET_MAGIC, ending, file_row, read_table, table_of_text
from attnlab.data.tasks.tables import BadRow, ColumnRequest, FileRow, FileTable


@dataclass(frozen=True)
class RowStream:
    """The rows of a file, which can be gone through more than once."""

    head: FileTable
    """Its columns, and the rows at its beginning."""
    rows: Callable[[], Iterator[FileRow]]
    """Raises at a row that has not the fields of the others."""


def stream_rows(path: Path, request: ColumnRequest, least: int = 2) -> RowStream:
    """The rows of a file of `least` columns or more."""
    start = _beginning(path)
    if start is None:
        table = read_table(path, request, least)
        return RowStream(table, lambda: _checked(table))
    if start.startswith(PARQUET_MAGIC) or ending(path) == ".parquet":
        columns, records = parquet.stream_rows(path)
        head = FileTable(path, columns, [], named=True, unit="row")
        return RowStream(head, lambda: (FileRow(n, fields) for n, fields in enumerate(records(), start=1)))
    whole = len(start) <= SAMPLE
    if not whole and b"\n" in start:
        start = start[: start.rfind(b"\n", 0, SAMPLE) + 1 + (start[:2] == codecs.BOM_UTF16_LE)]
    decoded = None if whole else decode(path, start, request.encoding)
    if decoded is None or "\n" not in decoded.text:
        table = read_table(path, request, least)
        return RowStream(table, lambda: _checked(table))
    if decoded.text.lstrip()[:1] in ("[", "{") or ending(path) in (".json", ".jsonl"):
        if not one_object_per_line(decoded.text):
            table = read_table(path, request, least)
            return RowStream(table, lambda: _checked(table))
        one = row_of_line(path, 1, decoded.text.split("\n", 1)[0])
        head = FileTable(path, list(one.fields), [one], named=True)
        return RowStream(head, lambda: _json_lines(path, request.encoding))
    layout = find_layout(path, decoded.text, ending(path), request.separator, request.quote, cut=True)
    head = table_of_text(path, decoded.text, layout, request, least, cut=True)._replace(bad=())
    first = head.rows[0].line - 1 if head.named else head.rows[0].line

    def rows() -> Iterator[FileRow]:
        cells = rows_in(path, _lines(path, request.encoding), layout)
        if head.named:
            next(cells)
        for row in cells:
            made = file_row(path, head.columns, head.named, row, layout, first)
            if isinstance(made, BadRow):
                raise UserError(made.sentence)
            yield made

    return RowStream(head, rows)


def _checked(table: FileTable) -> Iterator[FileRow]:
    if table.bad:
        raise UserError(table.bad[0].sentence)
    return iter(table.rows)


def _json_lines(path: Path, encoding: str | None) -> Iterator[FileRow]:
    for number, line in enumerate(_lines(path, encoding), start=1):
        if line.strip():
            yield row_of_line(path, number, line)


def _open(path: Path) -> IO[bytes]:
    file = path.open("rb")
    packed = file.read(2) == GZIP_MAGIC
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[return-value]


def _beginning(path: Path) -> bytes | None:
    """The first bytes, one more than a sample if there are so many; None for what is no file, such as a pipe."""
    if not path.is_file() or ending(path) in NO_TEXTS:
        return None
    try:
        with closing(_open(path)) as file:
            return file.read(SAMPLE + 1)
    except (OSError, EOFError):
        return None  # reading all of it says why


def _lines(path: Path, encoding: str | None) -> Iterator[str]:
    """The lines with their ends, in the encoding that is given or that each of them has."""
    with closing(_open(path)) as file:
        start = file.peek(4)[:4] if hasattr(file, "peek") else b""
        wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        if encoding is not None or wide:
            name = encoding or "utf-16"
            reader = io.TextIOWrapper(file, "utf-8-sig" if codecs.lookup(name).name == "utf-8" else name, newline="\n")
            yield from _read(path, reader)
        else:
            yield from decoded_lines(_limited(path, file))


def _read(path: Path, reader: io.TextIOWrapper) -> Iterator[str]:
    try:
        yield from reader
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not {error.encoding} throughout: leave out --encoding, or mend it.") from None


def _limited(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Lines of bytes, each of at most as many as are read of a file at once."""
    while line := file.readline(MOST_UNPACKED):
        if len(line) >= MOST_UNPACKED:
            raise UserError(f"{path} has a line of more than {MOST_UNPACKED >> 30} GB: it is no file of rows.")
        yield line
