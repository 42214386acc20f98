"""The figures of the documents that the lab lacks: paired bars, and a grid of accuracies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnlab.report.figures import COLOURS, STYLE, plt


def paired_bars(values: Mapping[str, tuple[float, float]], absent: Sequence[str], level: float, title: str) -> Any:
    """Dev and test accuracy by name; `absent` have none and are bars of height 0 with a note."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(max(6.4, 1.5 * len(values)), 3.8))
        for place, name in enumerate(values):
            for side, (value, colour) in enumerate(zip(values[name], COLOURS, strict=False)):
                middle = place + (side - 0.5) * 0.38
                axes.bar(middle, value, 0.36, color=colour, label=("dev", "test")[side] if not place else None)
                text = "not run" if name in absent else f"{value:.1%}"
                if side == 0 or name not in absent:
                    at = place if name in absent else middle
                    axes.annotate(text, (at, value), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8)
        axes.axhline(level, color="#4a5568", linestyle="--", linewidth=1, label="most common class (dev)")
        axes.set_xticks(range(len(values)), [name.replace("-", "-\n", 1) for name in values], fontsize=8)
        axes.grid(axis="x", visible=False)
        axes.set(title=title, ylabel="accuracy", ylim=(0, 1.25))
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
        axes.legend(ncols=3, loc="upper center")
        return figure


def heat_map(
    cells: Mapping[tuple[float, int], float],
    rates: Sequence[float],
    epochs: Sequence[int],
    best: tuple[float, int],
    title: str,
) -> Any:
    """Dev accuracy by learning rate and epochs; the best is framed."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(5.6, 1.2 + 0.8 * len(rates)))
        grid = [[cells[rate, count] for count in epochs] for rate in rates]
        shown = axes.imshow(grid, cmap="Blues", aspect="auto")
        low, high = shown.get_clim()
        for y, rate in enumerate(rates):
            for x, count in enumerate(epochs):
                dark = cells[rate, count] > (low + high) / 2
                axes.text(
                    x, y, f"{cells[rate, count]:.1%}", ha="center", va="center", color="white" if dark else "#1a202c"
                )
        x, y = list(epochs).index(best[1]), list(rates).index(best[0])
        axes.add_patch(plt.Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, fill=False, edgecolor="#dd6b20", linewidth=2.5))
        axes.set_xticks(range(len(epochs)), [str(count) for count in epochs])
        axes.set_yticks(range(len(rates)), [f"{rate:g}" for rate in rates])
        axes.grid(visible=False)
        axes.set(title=title, xlabel="epochs", ylabel="learning rate")
        return figure
