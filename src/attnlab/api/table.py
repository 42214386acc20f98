"""Results as a table: a list of dictionaries that shows itself in a notebook and becomes a DataFrame on request."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from attnlab.base import html
from attnlab.base.errors import UserError


class Table(list[dict[str, Any]]):
    """Rows by column name. A row may lack a column.

    >>> Table([{"variant": "vanilla", "dev_loss": 2.0}]).columns
    ['variant', 'dev_loss']
    """

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self for name in row))

    def to_pandas(self) -> Any:
        """The same as a pandas DataFrame."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise UserError("pandas is not installed: 'pip install pandas', or use the rows as they are.") from None
        return pandas.DataFrame(list(self), columns=self.columns)

    def __str__(self) -> str:
        rows = [self.columns, *self._cells()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self.columns))]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return html.table(self.columns, self._cells())

    def _cells(self) -> list[list[str]]:
        return [[shown(row.get(name)) for name in self.columns] for row in self]


def shown(value: object) -> str:
    """A value in a cell: four digits of a number, nothing for None."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={shown(inner)}" for name, inner in value.items())
    return "" if value is None else str(value)
