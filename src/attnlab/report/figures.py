"""Figures, drawn without a display. `save` writes a PNG and returns the SVG text for a page."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

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
COLOURS = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#c53030", "#718096", "#b7791f", "#0987a0")

Curve = tuple[Sequence[float], Sequence[float]]


def curves(
    lines: Mapping[str, Curve],
    title: str,
    x: str,
    y: str,
    levels: Mapping[str, float] | None = None,
    percent: bool = False,
) -> Any:
    """Lines by name, and dashed horizontal `levels` (a baseline, for example)."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.4))
        for (name, (xs, ys)), colour in zip(lines.items(), COLOURS * 3, strict=False):
            axes.plot(
                xs, ys, label=name, color=colour, linewidth=1.8, marker="o" if len(xs) <= 30 else None, markersize=3.5
            )
        for name, level in (levels or {}).items():
            axes.axhline(level, color="#4a5568", linestyle="--", linewidth=1, label=name)
        axes.set(title=title, xlabel=x, ylabel=y)
        if percent:
            axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0))
            axes.set_ylim(0, 1)
        axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
        if len(lines) + len(levels or {}) > 1:
            axes.legend()
        return figure


def bars(values: Mapping[str, tuple[float, tuple[float, float]]], title: str, y: str) -> Any:
    """Shares by name with their intervals, each value written above its bar."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.4))
        for x, ((_, (value, (low, high))), colour) in enumerate(zip(values.items(), COLOURS, strict=False)):
            errors = [[max(0.0, value - low)], [max(0.0, high - value)]]
            axes.bar(x, value, color=colour, width=0.6, yerr=errors, capsize=5, ecolor="#2d3748")
            axes.annotate(f"{value:.1%}", (x, high), textcoords="offset points", xytext=(0, 4), ha="center")
        axes.set_xticks(range(len(values)), list(values))
        axes.grid(axis="x", visible=False)
        axes.set(title=title, ylabel=y)
        axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0))
        axes.set_ylim(0, min(1.15, max(high for _, (_, high) in values.values()) * 1.15))
        return figure


def save(figure: Any, path: Path) -> str:
    """Write the PNG; returns the same figure as SVG text."""
    figure.savefig(path, dpi=150)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()
