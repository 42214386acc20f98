"""Rows of a file with their line numbers, as every reader returns them, and what a user may say about a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

SPLIT = "split"
"""The name of a column that says which split a row belongs to."""


@dataclass(frozen=True)
class ColumnRequest:
    """The columns, the classes and the layout a user names; None means: find it."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    classes: tuple[str, ...] = ()
    """Names of the classes, in order."""
    header: bool | None = None
    allow_empty: bool = False
    """Whether a text may be empty."""
    separator: str | None = None
    quote: str | None = None
    encoding: str | None = None
    skip_bad_rows: bool = False
    """Leave out rows that cannot be used; otherwise they are refused."""


class FileRow(NamedTuple):
    line: int
    fields: dict[str, Any]


class BadRow(NamedTuple):
    """A row that cannot be used."""

    where: str
    sentence: str
    """Where it is and what is wrong."""
    content: str


class FileTable(NamedTuple):
    path: Path
    columns: list[str]
    rows: list[FileRow]
    named: bool
    """Whether the file names its columns; if not, they are called 1, 2, ..."""
    unit: str = "line"
    """What `FileRow.line` counts: lines of text, or rows."""
    notes: tuple[str, ...] = ()
    """How the file was read, one sentence each."""
    bad: tuple[BadRow, ...] = ()
    """Rows that are none: they have too many fields, or too few."""

    def where(self, row: FileRow) -> str:
        return f"{self.path}, {self.unit} {row.line}"

    @property
    def where_first(self) -> str:
        return self.where(self.rows[0])


def content_of(cells: Sequence[Any]) -> str:
    """A row as it is listed among those left out."""
    return " | ".join(str(cell) for cell in cells)
