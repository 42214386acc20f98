"""Rows that cannot be used: all of them named at once, or left out and kept in a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.data.tasks.spreadsheet import csv_text
from attnlab.data.tasks.tables import BadRow, FileRow, FileTable, content_of

TOLERATED = 0.005
"""The share of rows that may be left out unasked because they do not have the fields of the others."""
NAMED = 5
"""How many bad rows a sentence names."""


def usable_rows(
    table: FileTable, check: Callable[[FileTable, FileRow], None], skip: bool
) -> tuple[FileTable, list[BadRow], list[str]]:
    """The table with the rows that pass `check`, those that are left out, and a sentence about them.

    `check` raises a UserError for a row that cannot be used. Without `skip` such rows are refused; a few that do not
    have the fields of the others are left out in any case.
    """
    good: list[FileRow] = []
    unusable: list[BadRow] = []
    for row in table.rows:
        try:
            check(table, row)
        except UserError as error:
            unusable.append(BadRow(table.where(row), str(error), content_of(list(row.fields.values()))))
        else:
            good.append(row)
    bad = [*table.bad, *unusable]
    if not bad:
        return table, [], []
    total = len(table.rows) + len(table.bad)
    if not (skip or (not unusable and len(bad) <= TOLERATED * total)):
        raise UserError(_refusal(bad, total))
    if not good:
        raise UserError(f"{table.path}: none of the {total:,} rows can be used; the first: {bad[0].sentence}")
    return table._replace(rows=good, bad=()), bad, [_left_out(table.path, bad, total)]


def _refusal(bad: Sequence[BadRow], total: int) -> str:
    if len(bad) == 1:
        return bad[0].sentence
    others = ", ".join(row.where.rpartition(", ")[2] for row in bad[1:NAMED])
    more = f" and {len(bad) - NAMED:,} more" if len(bad) > NAMED else ""
    return (
        f"{bad[0].sentence.rstrip('.')}; {len(bad):,} of {total:,} rows cannot be used, also {others}{more}: correct "
        "them, or leave them out with --skip-bad-rows."
    )


def _left_out(path: Path, bad: Sequence[BadRow], total: int) -> str:
    named = ", ".join(row.where.rpartition(", ")[2] for row in bad[:NAMED])
    more = f" and {len(bad) - NAMED:,} more" if len(bad) > NAMED else ""
    reason = bad[0].sentence.removeprefix(bad[0].where).lstrip(": ").rstrip(".")
    return f"{path.name}: {len(bad):,} of {total:,} rows left out as unusable: {named}{more} ({reason})."


def write_bad_rows(rows: Sequence[BadRow], path: Path) -> None:
    """A CSV of the rows that were left out: where, why, what."""
    write_text(path, csv_text(BadRow._fields, rows))
