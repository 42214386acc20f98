"""The axes of a search: settings with values to choose from or a range, and settings as labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Settings = dict[str, Any]
"""By dotted name."""
NEAR = 0.05  # of a range: a best value this close to its end lies on the edge


@dataclass(frozen=True)
class Choices:
    """A setting with values to choose from."""

    values: tuple[Any, ...]

    @property
    def numeric(self) -> bool:
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    @property
    def ordered(self) -> list[Any]:
        return sorted(self.values) if self.numeric else list(self.values)

    def edge(self, value: Any) -> str | None:
        if not self.numeric or len(self.values) < 2:
            return None
        return {min(self.values): "lowest", max(self.values): "highest"}.get(value)

    def place(self, value: Any) -> float:
        """Between 0 and 1, by its rank."""
        values = self.ordered
        return (values.index(value) + 0.5) / len(values) if value in values else 0.5

    def __str__(self) -> str:
        return ", ".join(map(show, self.values))


@dataclass(frozen=True)
class Range:
    """A setting that is a number between two others."""

    low: float
    high: float
    log: bool
    whole: bool

    numeric = True

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end."""
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def edge(self, value: Any) -> str | None:
        place = self.place(value)
        return "lowest" if place <= NEAR else "highest" if place >= 1 - NEAR else None

    def __str__(self) -> str:
        return f"{show(self.low)} to {show(self.high)}" + (", on a log scale" if self.log else "")


Axis = Choices | Range


def varied(axes: Mapping[str, Axis]) -> list[str]:
    """The settings with more than one value."""
    return [name for name, axis in axes.items() if not isinstance(axis, Choices) or len(axis.values) > 1]


def show(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The shortest end of each name that no other has: lr for optimizer.lr."""
    every = list(names)

    def shortest(name: str) -> str:
        parts = name.split(".")
        ends = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        return next(end for end in ends if sum(f".{other}".endswith(f".{end}") for other in every) == 1)

    return {name: shortest(name) for name in every}


def label_of(settings: Mapping[str, Any]) -> str:
    names = short_names(settings)
    return ", ".join(f"{names[name]}={show(value)}" for name, value in settings.items())
