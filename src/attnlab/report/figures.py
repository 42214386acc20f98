"""Figures, drawn without a display. `save` writes a PNG and returns the SVG text for a page.

Not by pyplot: in a notebook its backend, its open figures and the settings of matplotlib are the user's.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from attnlab.base.figure_text import show_as_written
from attnlab.base.files import write_bytes
from attnlab.stats.intervals import Proportion

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "attnlab",
}
FRAMELESS: dict[Any, Any] = {"axes.grid": False, "axes.spines.left": False, "axes.spines.bottom": False}
"""Of a grid of cells."""
COLOURS = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#c53030", "#718096", "#b7791f", "#0987a0")

Curve = tuple[Sequence[float], Sequence[float]]


def styled(changes: Mapping[Any, Any] | None = None) -> AbstractContextManager[None]:
    """Inside, the style of the lab, whatever the user's settings are; afterwards these again."""
    return matplotlib.style.context(["default", STYLE | dict(changes or {})])


def subplots(rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], **layout: Any) -> tuple[Figure, Any]:
    """A figure and its axes, an array if there are several."""
    figure = Figure(figsize=figsize)
    return figure, figure.subplots(rows, columns, **layout)


def curves(
    lines: Mapping[str, Curve],
    title: str,
    x: str,
    y: str,
    levels: Mapping[str, float] | None = None,
    percent: bool = False,
) -> Any:
    """Lines by name, and dashed horizontal `levels` (a baseline, for example)."""
    with styled():
        figure, axes = subplots(figsize=(6.4, 3.4))
        for (name, (xs, ys)), colour in zip(lines.items(), COLOURS * 3, strict=False):
            axes.plot(
                xs, ys, label=name, color=colour, linewidth=1.8, marker="o" if len(xs) <= 30 else None, markersize=3.5
            )
        for name, level in (levels or {}).items():
            axes.axhline(level, color="#4a5568", linestyle="--", linewidth=1, label=name)
        axes.set(title=title, xlabel=x, ylabel=y)
        if percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axes.set_ylim(0, 1.02)  # room for a line at 100%
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(lines) + len(levels or {}) > 1:
            axes.legend()
        return figure


def bars(values: Mapping[str, tuple[float, tuple[float, float]]], title: str, y: str) -> Any:
    """Shares by name with their intervals, each value written above its bar."""
    with styled():
        figure, axes = subplots(figsize=(6.4, 3.4))
        for x, ((_, (value, (low, high))), colour) in enumerate(zip(values.items(), COLOURS, strict=False)):
            errors = [[max(0.0, value - low)], [max(0.0, high - value)]]
            axes.bar(x, value, color=colour, width=0.6, yerr=errors, capsize=5, ecolor="#2d3748")
            axes.annotate(f"{value:.1%}", (x, high), textcoords="offset points", xytext=(0, 4), ha="center")
        axes.set_xticks(range(len(values)), list(values))
        axes.grid(axis="x", visible=False)
        axes.set(title=title, ylabel=y)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_ylim(0, min(1.15, max(high for _, (_, high) in values.values()) * 1.15))
        return figure


def save(figure: Any, path: Path) -> str:
    """Write the PNG; returns the same figure as SVG text."""
    text, picture = io.StringIO(), io.BytesIO()
    with styled():
        show_as_written(figure).savefig(picture, format="png", dpi=150)
        figure.savefig(text, format="svg", metadata={"Date": None})
    write_bytes(path, picture.getvalue())
    return text.getvalue()


def reliability(groups: Sequence[Mapping[str, Any]]) -> Any:
    """Accuracy by confidence with intervals, and below it the number of answers per bin."""
    with styled():
        figure, (upper, lower) = subplots(2, 1, figsize=(6.4, 4.6), sharex=True, gridspec_kw={"height_ratios": (3, 1)})
        upper.plot([0, 1], [0, 1], color="#4a5568", linestyle="--", linewidth=1, label="perfect calibration")
        shares = [Proportion(group["right"], group["count"]) for group in groups]
        xs, ys = [group["confidence"] for group in groups], [each.share for each in shares]
        errors = [
            [max(0.0, each.share - each.interval[0]) for each in shares],  # rounding can leave -1e-17
            [max(0.0, each.interval[1] - each.share) for each in shares],
        ]
        upper.errorbar(xs, ys, errors, fmt="o", color=COLOURS[0], capsize=4, label="answers, by confidence")
        upper.set(title="Reliability of the confidence", ylabel="accuracy", ylim=(-0.03, 1.03), xlim=(0, 1))
        upper.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        upper.legend(loc="best")
        for group in groups:
            middle, count = (group["low"] + group["high"]) / 2, group["count"]
            lower.bar(middle, count, width=0.09, color=COLOURS[0], alpha=0.6)
            lower.annotate(
                str(count), (middle, count), textcoords="offset points", xytext=(0, 2), ha="center", fontsize=8
            )
        lower.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
        lower.set(xlabel="confidence", ylabel="answers", ylim=(0, max(group["count"] for group in groups) * 1.25))
        return figure
