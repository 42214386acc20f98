"""All rows of a labelled file, whatever its form: Parquet, JSON, or text laid out in rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.data.tasks import parquet
from attnlab.data.tasks.columns import USUAL
from attnlab.data.tasks.decode import decode, read_raw
from attnlab.data.tasks.json_rows import json_table
from attnlab.data.tasks.layout import FASTTEXT, Cells, Layout, find_layout, rows_of
from attnlab.data.tasks.spreadsheet import unguarded
from attnlab.data.tasks.tables import SPLIT, BadRow, ColumnRequest, FileRow, FileTable, content_of

FORMATS = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet")
"""Endings by which the files of a folder are known; a single file may have any."""
PARQUET_MAGIC = b"PAR1"
NO_TEXTS = {
    ".xlsx": "a spreadsheet",
    ".xls": "a spreadsheet",
    ".zip": "an archive",
    ".pdf": "a PDF",
    ".docx": "a document",
}
SHOWN_ROWS = 200


def ending(path: Path) -> str:
    """The extension in small letters, without that of gzip."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def read_table(path: Path, request: ColumnRequest, least: int = 2) -> FileTable:
    """All rows of a file, of `least` columns or more."""
    if what := NO_TEXTS.get(ending(path)):
        raise UserError(f"{path} is {what}: save its rows as CSV, TSV, JSONL or Parquet.")
    raw = read_raw(path)
    if raw.startswith(PARQUET_MAGIC) or ending(path) == ".parquet":
        return _parquet(path)
    decoded = decode(path, raw, request.encoding)
    if decoded.text.lstrip()[:1] in ("[", "{") or ending(path) in (".json", ".jsonl"):
        table = _with_header(json_table(path, decoded.text), request)
    else:
        layout = find_layout(path, decoded.text, ending(path), request.separator, request.quote)
        table = table_of_text(path, decoded.text, layout, request, least)
    return table._replace(notes=(*table.notes, *decoded.notes))


def is_header(
    first: Sequence[str], others: Sequence[Sequence[str]], request: ColumnRequest, where: str = "the first row"
) -> bool:
    """Whether a first row names columns.

    It does if one of its cells is a usual column name or one the user gave, or a word above a column of numbers. With
    a usual name beside a cell that occurs again below, such as a class, it may be either: that is asked.
    """
    if request.header is not None:
        return request.header
    requested = {name for name in (request.text, request.pair, request.label) if name and not name.isdecimal()}
    if any(cell.strip() in requested for cell in first):
        return True
    columns = list(zip(*(row for row in others if len(row) == len(first)), strict=True))
    if usual := [cell for cell in first if cell.strip().lower() in USUAL]:
        again = [name for name, column in zip(first, columns, strict=False) if name.strip() and name in column]
        if again:
            raise UserError(
                f"{where} is a header or an example: {usual[0].strip()!r} is a usual name of a column, but "
                f"{again[0].strip()!r} also occurs below; give --header or --no-header."
            )
        return True
    return len(others) > 2 and any(
        not _is_number(name) and all(_is_number(cell) for cell in column)
        for name, column in zip(first, columns, strict=False)
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _with_header(table: FileTable, request: ColumnRequest) -> FileTable:
    """A list of lists whose first one names the columns, as a table with these names."""
    first, *others = ([str(value) for value in row.fields.values()] for row in table.rows)
    if table.named or SPLIT in table.columns or not is_header(first, others[:SHOWN_ROWS], request, table.where_first):
        return table
    columns = _names(first, table.where_first)
    rows = [FileRow(row.line, dict(zip(columns, row.fields.values(), strict=True))) for row in table.rows[1:]]
    notes = (*table.notes, "with header (--header, --no-header).")
    return table._replace(columns=columns, rows=rows, named=True, notes=notes)


def table_of_text(
    path: Path, text: str, layout: Layout, request: ColumnRequest, least: int, cut: bool = False
) -> FileTable:
    """The rows of a text of which the layout is known; `cut`: it may end within a row."""
    rows = list(_before_the_cut(rows_of(path, text, layout)) if cut else rows_of(path, text, layout))
    if not rows:
        raise UserError(f"{path} has no rows: give at least one.")
    first = rows[0]
    width = len(first.cells) if layout.separator != FASTTEXT else max(least, 2)
    if len(first.cells) < least:
        raise UserError(
            f"{path}, line {first.line} has one column, expected at least two (text and label): "
            "name what is between them with --separator."
        )
    where = f"{path}, line {first.line}"
    named = is_header(first.cells, [row.cells for row in islice(rows, 1, SHOWN_ROWS)], request, where)
    columns = _names(first.cells, where) if named else [str(place + 1) for place in range(width)]
    good, bad = [], []
    for row in rows[1:] if named else rows:
        made = file_row(path, columns, named, row, layout, first.line)
        if isinstance(made, BadRow):
            bad.append(made)
        else:
            good.append(made)
    if not good:
        if bad:
            raise UserError(bad[0].sentence)
        raise UserError(f"{path} has no rows below its header: give at least one.")
    note = f"{layout} (--separator, --quote), {'with' if named else 'no'} header (--header, --no-header)."
    return FileTable(path, columns, good, named, notes=(note,), bad=tuple(bad))


def _names(first: Sequence[str], where: str) -> list[str]:
    """The names of the columns; one without a name, as an index is often written, is called by its place."""
    columns = [cell.strip() or f"column {place}" for place, cell in enumerate(first, start=1)]
    if len(set(columns)) < len(columns):
        raise UserError(f"{where} names a column twice ({', '.join(columns)}): rename one.")
    return columns


def _before_the_cut(rows: Iterator[Cells]) -> Iterator[Cells]:
    with suppress(UserError):
        yield from rows


def file_row(path: Path, columns: list[str], named: bool, row: Cells, layout: Layout, first: int) -> FileRow | BadRow:
    """A row with the names of its fields; `first` is the line of the first one."""
    if len(row.cells) != len(columns):
        return _odd(path, row, len(columns), first, layout)
    own = named and layout.separator in ("comma", "tab")  # perhaps written by the lab
    cells = unguarded(columns, row.cells) if own else row.cells
    return FileRow(row.line, dict(zip(columns, cells, strict=True)))


def _odd(path: Path, row: Cells, width: int, first: int, layout: Layout) -> BadRow:
    quote = "; quote fields that contain commas" if layout.separator == "comma" else ""
    where = f"{path}, line {row.line}"
    sentence = f"{where} has {len(row.cells)} fields, expected {width} as in line {first}{quote}."
    if layout.separator == FASTTEXT and len(row.cells) > width:
        sentence = f"{where} has {len(row.cells) - 1} labels, expected one: a classifier gives every text one class."
    return BadRow(where, sentence, content_of(row.cells))


def _parquet(path: Path) -> FileTable:
    columns, records = parquet.read_rows(path)
    if not records or not columns:
        raise UserError(f"{path} is empty: give at least one row with a text.")
    if len(set(columns)) < len(columns):
        raise UserError(f"{path} names a column twice ({', '.join(columns)}): rename one.")
    rows = [FileRow(number, fields) for number, fields in enumerate(records, start=1)]
    return FileTable(path, columns, rows, named=True, unit="row", notes=("Parquet.",))
