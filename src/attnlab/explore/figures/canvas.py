"""One style for all figures: colours, sizes, saving. No pyplot, so no global state and no window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure

from attnlab.base.errors import UserError, unknown
from attnlab.base.figure_text import show_as_written
from attnlab.explore.attend import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place = Literal["best", "upper left", "upper center", "upper right", "lower left", "lower right"]

INK = "#22303c"
MUTED = "#8a97a3"
FAINT = "#e3e8ec"
CHOSEN = "#d1495b"  # the chosen keys and values
OTHER = "#5b8db8"  # everything else
GOOD = "#3a8f6b"
SECOND = "#e0a030"


def sheet(
    columns: int, title: str, width: float = 10.0, height: float = 3.7, ratios: list[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure with a title and panels side by side, readable at 800 pixels."""
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    figure.suptitle(title, fontsize=13, color=INK, fontweight="bold")
    axes = figure.subplots(1, columns, squeeze=False, width_ratios=ratios)[0]
    return figure, [styled(panel) for panel in axes]


def styled(panel: Axes) -> Axes:
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(MUTED)
    panel.tick_params(colors=INK, labelsize=9)
    panel.set_axisbelow(True)
    return panel


def caption(panel: Axes, title: str, x: str = "", y: str = "") -> None:
    panel.set_title(title, fontsize=11, color=INK, loc="left")
    panel.set_xlabel(x, fontsize=10, color=INK)
    panel.set_ylabel(y, fontsize=10, color=INK)


def legend(panel: Axes, place: Place = "best", columns: int = 1) -> None:
    panel.legend(fontsize=9, frameon=False, loc=place, labelcolor=INK, ncols=columns)


def headroom(panel: Axes, share: float = 0.22) -> None:
    """Extend the y-axis for a legend above the data."""
    low, high = panel.get_ylim()
    panel.set_ylim(low, high + share * (high - low))


def heatmap(panel: Axes, matrix: Array, limit: float | None = None, digits: int = 2) -> None:
    """A matrix in colour, blue below zero and red above; a small one also with its numbers."""
    reach = limit or float(np.abs(matrix).max()) or 1.0
    panel.imshow(matrix, cmap="RdBu_r", vmin=-reach, vmax=reach, aspect="auto")
    for side in panel.spines.values():
        side.set_visible(False)
    panel.tick_params(length=0)
    if matrix.size > 120:
        return
    for row, numbers in enumerate(matrix):
        for column, number in enumerate(numbers):
            shown = f"{number:.{digits}f}"
            if float(shown) == 0.0:
                shown = "0"
            colour = "white" if abs(number) > 0.6 * reach else INK
            panel.text(column, row, shown, ha="center", va="center", fontsize=9, color=colour)


def check_path(path: Path) -> None:
    """Raise for a file that cannot be written as a figure, before anything is computed for it."""
    formats = Figure().canvas.get_supported_filetypes()
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in formats:
        raise UserError(f"{path}: " + unknown("figure format", suffix or "(none)", formats))
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist; create it first or give another one.")


def save(draw: Callable[[], Figure], path: Path) -> Path:
    """Check the path first, then draw."""
    check_path(path)
    try:
        show_as_written(draw()).savefig(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None
    return path
