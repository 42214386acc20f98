"""What every exploration returns: numbers, an explanation and a figure."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from attnlab.base import html
from attnlab.explore.attend import Array, attend, largest_difference, softmax

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 8  # numbers of a vector, rows and columns of a matrix


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exploration(ABC):
    """The result of one exploration."""

    title: str
    why: str

    derived: ClassVar[tuple[str, ...]] = ()
    """Properties that `as_dict` returns in addition to the fields."""

    @abstractmethod
    def summary(self) -> list[tuple[str, str]]:
        """The most important numbers, by name."""

    @abstractmethod
    def table(self) -> tuple[list[str], list[list[str]]]:
        """The details: headings and rows."""

    def matrices(self) -> dict[str, Array]:
        """The matrices that were built, by name or formula."""
        return {}

    @abstractmethod
    def figure(self) -> Figure:
        """The figure."""

    def draw(self, path: str | Path) -> Path:
        """Write the figure to a file; the suffix of its name selects the format."""
        from attnlab.explore.figures.canvas import save

        return save(self.figure, Path(path))

    def _repr_html_(self) -> str:
        tables = html.table(["", ""], self.summary()) + html.table(*self.table())
        return html.heading(self.title) + html.paragraph(self.why) + tables + html.picture(self.figure(), self.title)

    def as_dict(self) -> dict[str, Any]:
        """Everything except large samples, as plain lists, numbers and strings."""
        fields = [field.name for field in dataclasses.fields(self) if not field.metadata.get("bulky")]
        return {name: _plain(getattr(self, name)) for name in (*fields, *self.derived)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class QueryExploration(Exploration):
    """Queries against keys and values: their outputs next to the targets."""

    keys: Array  # (n, d)
    values: Array  # (n, e)
    queries: Array  # (m, d)
    targets: Array  # (m, e)
    wanted: Array  # (m, n), the weights that give the targets
    reachable: bool
    """Whether longer queries come arbitrarily close to the wanted weights."""

    derived = ("scores", "weights", "outputs", "error", "lengths")

    @property
    def scores(self) -> Array:
        return np.asarray(self.queries @ self.keys.T)

    @property
    def weights(self) -> Array:
        return softmax(self.scores)

    @property
    def outputs(self) -> Array:
        return attend(self.queries, self.keys, self.values)

    @property
    def error(self) -> float:
        """The largest absolute difference between any component of output and target."""
        return largest_difference(self.outputs, self.targets)

    @property
    def lengths(self) -> Array:
        return np.asarray(np.linalg.norm(self.queries, axis=1))

    def summary(self) -> list[tuple[str, str]]:
        many = len(self.queries) > 1
        pairs = [("Q" if many else "q", "; ".join(vector(query) for query in self.queries))]
        pairs += [("length", ", ".join(f"{length:.4g}" for length in self.lengths))]
        if not many:
            pairs += [("output", vector(self.outputs[0])), ("target", vector(self.targets[0]))]
        return [*pairs, ("error", f"{self.error:.3g}")]

    def table(self) -> tuple[list[str], list[list[str]]]:
        if len(self.queries) == 1:
            rows = zip(self.keys, self.scores[0], self.weights[0], self.wanted[0], self.values, strict=True)
            return ["i", "key", "score", "weight", "wanted", "value"], [
                [str(i), vector(key), f"{score:.4g}", f"{weight:.6f}", f"{wanted:.6f}", vector(value)]
                for i, (key, score, weight, wanted, value) in enumerate(rows)
            ]
        head = ["query", *(f"weight on k{i}" for i in range(len(self.keys))), "output", "target"]
        lines = zip(self.weights, self.outputs, self.targets, strict=True)
        return head, [
            [f"q{row}", *(f"{weight:.6f}" for weight in weights), vector(output), vector(target)]
            for row, (weights, output, target) in enumerate(lines)
        ]

    def figure(self) -> Figure:
        from attnlab.explore.figures.attention import one_query, several_queries

        return one_query(self) if len(self.queries) == 1 else several_queries(self)


def vector(numbers: Array) -> str:
    """(0.47, 0.65, 0.6): four digits; the middle of a long vector is left out."""
    return f"({', '.join(_shortened([f'{number:.4g}' for number in numbers], '…'))})"


def is_shortened(numbers: Array) -> bool:
    """Whether printing leaves out the middle of a vector or of a matrix."""
    return max(numbers.shape) > MOST_SHOWN


def rows_of(matrix: Array) -> list[str]:
    """The rows of a matrix in aligned columns with four decimals; the middle of a large one is left out."""
    size = float(np.abs(matrix).max())
    form = ".4f" if 0.01 <= size < 1000 else ".3e"
    cells = [_shortened([f"{number:{form}}" for number in row], "…") for row in np.round(matrix, 15) + 0.0]
    width = max(len(cell) for row in cells for cell in row)
    return _shortened(["  " + " ".join(f"{cell:>{width}}" for cell in row) for row in cells], "  …")


def _shortened(cells: list[str], dots: str) -> list[str]:
    return cells if len(cells) <= MOST_SHOWN else [*cells[:4], dots, *cells[-2:]]


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no infinity
    return value
