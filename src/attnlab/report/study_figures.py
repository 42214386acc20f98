"""Figures of a study of classifiers: dev and test accuracy as paired bars, a grid of accuracies, panels by epoch."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Rectangle

from attnlab.report.classifier_figures import courses
from attnlab.report.figures import COLOURS, styled, subplots
from attnlab.report.series import AccuracyCurve
from attnlab.stats.intervals import Mean, Proportion

GREY, INK, FRAME = "#4a5568", "#1a202c", "#dd6b20"


def paired_bars(
    rows: Mapping[str, tuple[Proportion, Proportion] | str], baselines: tuple[float, float], title: str
) -> Any:
    """Dev and test accuracy by name, with intervals; one without any has the reason, in two words, at height 0."""
    with styled():
        figure, axes = subplots(figsize=(max(6.4, 1.35 * len(rows)), 3.8))
        for place, row in enumerate(rows.values()):
            if isinstance(row, str):
                axes.text(place, 0.01, row, ha="center", va="bottom", fontsize=8, color=INK)
                continue
            for side, (share, colour) in enumerate(zip(row, COLOURS, strict=False)):
                middle, value, (low, high) = place + (side - 0.5) * 0.38, share.share, share.interval
                errors = [[max(0.0, value - low)], [max(0.0, high - value)]]  # rounding can leave -1e-17
                axes.bar(middle, value, 0.36, color=colour, yerr=errors, capsize=3, ecolor=INK)
                axes.text(middle, value / 2, f"{value:.1%}", ha="center", va="center", fontsize=8, color="white")
        for side, (split, level) in enumerate(zip(("dev", "test"), baselines, strict=True)):
            axes.bar(0, 0, color=COLOURS[side], label=split)
            axes.axhline(level, color=COLOURS[side], linestyle="--", linewidth=1, label=f"most common class, {split}")
        axes.set_xticks(range(len(rows)), [textwrap.fill(name, 15) for name in rows], fontsize=8)
        axes.set_xlim(-0.6, len(rows) - 0.4)
        axes.grid(axis="x", visible=False)
        axes.set(title=title, ylabel="accuracy", ylim=(0, 1.02))
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
        figure.legend(ncols=4, loc="outside lower center", fontsize=8)
        return figure


def heat_map(
    cells: Mapping[tuple[float, int], float | None],
    rates: Sequence[float],
    epochs: Sequence[int],
    best: tuple[float, int],
    title: str,
) -> Any:
    """Dev accuracy by learning rate and epochs, None where a run failed; the best is framed."""
    with styled():
        figure, axes = subplots(figsize=(5.6, 1.2 + 0.8 * len(rates)))
        known = [value for value in cells.values() if value is not None]
        low, high = min(known), max(known)
        grid = [[low if (value := cells[rate, count]) is None else value for count in epochs] for rate in rates]
        axes.imshow(grid, cmap="Blues", aspect="auto", vmin=low - 0.02, vmax=high + 0.02)
        for y, rate in enumerate(rates):
            for x, count in enumerate(epochs):
                value = cells[rate, count]
                colour = "white" if value is not None and value > (low + high) / 2 else INK
                text = "failed" if value is None else f"{value:.1%}"
                axes.text(x, y, text, ha="center", va="center", color=colour)
        x, y = list(epochs).index(best[1]), list(rates).index(best[0])
        axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, fill=False, edgecolor=FRAME, linewidth=2.5))
        axes.set_xticks(range(len(epochs)), [str(count) for count in epochs])
        axes.set_yticks(range(len(rates)), [f"{rate:g}" for rate in rates])
        axes.grid(visible=False)
        axes.set(title=title, xlabel="epochs", ylabel="learning rate")
        return figure


def panels(by_epoch: Mapping[str, Mapping[str, Sequence[float]]], baseline: float) -> Any:
    """Accuracy on train and dev by epoch, one panel per classifier."""
    curves = [
        AccuracyCurve(
            name,
            [float(epoch) for epoch in range(1, 1 + max(map(len, splits.values())))],
            {split: [Mean((value,)) for value in values] for split, values in splits.items()},
        )
        for name, splits in by_epoch.items()
    ]
    return courses(curves, baseline)
