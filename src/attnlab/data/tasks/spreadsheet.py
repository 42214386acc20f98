"""Predictions as a CSV that is safe to open in a spreadsheet, and that reads back as it was.

A spreadsheet executes a cell that begins with one of = + - @ (also in full width), a tab or a line end. As OWASP
advises ("CSV Injection"), every cell is quoted, and one that begins so gets an apostrophe in front. So does a cell that
begins with apostrophes before such a character; thus taking one apostrophe away gives every text back:

    =1+1  ->  '=1+1        '=1+1  ->  ''=1+1        'tis  ->  'tis

Only a file with the columns `predicted` and `probability` is read so: in a file of somebody else an apostrophe is text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence

WRITTEN = {"predicted", "probability"}
"""The columns of a file that the lab wrote."""
_FORMULA = re.compile("'*[=+\\-@＝＋－＠\t\r\n]")
_GUARDED = re.compile("''*[=+\\-@＝＋－＠\t\r\n]")


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows, every cell in quotes."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([guarded(str(cell)) for cell in row] for row in rows)
    return file.getvalue()


def unguarded(columns: Collection[str], cells: list[str]) -> list[str]:
    """The cells of a row as they were before `csv_text`."""
    if not set(columns) >= WRITTEN:
        return cells
    return [cell[1:] if _GUARDED.match(cell) else cell for cell in cells]


def guarded(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell
