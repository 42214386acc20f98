"""Figures of a comparison of language models: loss curves, the effect of hiding the future, loss by length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import LogLocator, NullFormatter

from attnlab.report.comparison_figures import ALARM, INK, style_of
from attnlab.report.figures import COLOURS, styled, subplots
from attnlab.report.series import FutureGap, LengthLosses, LossCurve
from attnlab.stats.intervals import Mean


def paths(curves: Sequence[LossCurve]) -> Any:
    """Validation loss by steps and by seconds, with bands."""
    styles = style_of([curve.label for curve in curves])
    with styled():
        figure, panels = subplots(1, 2, figsize=(10.5, 4.2), sharey=True)
        _lines(panels[0], curves, styles, lambda curve: curve.steps)
        _lines(panels[1], curves, styles, lambda curve: curve.seconds)
        panels[0].set(title="by steps", xlabel="step", ylabel="validation loss, nats per token")
        panels[1].set(title="by time", xlabel="seconds of training, by its measured speed")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
        return figure


def _lines(axes: Any, curves: Sequence[LossCurve], styles: Any, across: Callable[[LossCurve], Sequence[float]]) -> None:
    shown: list[Mean] = []
    for curve in curves:
        name = f"{curve.label} (sees the future)" if curve.leaks else curve.label
        _band(axes, across(curve), curve.losses, name, styles[curve.label])
        shown += curve.losses[1:] or curve.losses  # the first values are nearly equal and would squeeze the rest
    _show(axes, shown)


def _show(axes: Any, means: Sequence[Mean]) -> None:
    """Fit the axis to the means; one wide band must not squeeze all lines."""
    values = [mean.mean for mean in means]
    if values:
        room = 0.06 * (max(values) - min(values)) + 0.01
        axes.set_ylim(min(values) - room, max(values) + room)


def _band(axes: Any, xs: Sequence[float], means: Sequence[Mean], name: str, style: dict[str, Any]) -> None:
    axes.plot(xs, [mean.mean for mean in means], label=name, linewidth=1.6, **style)
    if means and all(mean.interval for mean in means):
        lows, highs = zip(*[mean.interval or (0.0, 0.0) for mean in means], strict=True)
        axes.fill_between(xs, lows, highs, color=style["color"], alpha=0.15, linewidth=0)


def futures(rows: Sequence[FutureGap]) -> Any:
    """Perplexity in one pass and prefix by prefix, on the same blocks: a line between them, one per run, is a leak."""
    with styled():
        figure, axes = subplots(figsize=(7.2, 1.3 + 0.3 * len(rows)))
        for place, row in enumerate(rows):
            colour = ALARM if row.leaks else COLOURS[0]
            for n, pair in enumerate(row.pairs):
                height = place + 0.16 * (n - (len(row.pairs) - 1) / 2)
                axes.plot(pair, [height, height], color=colour, linewidth=1, alpha=0.7)
                axes.plot(pair[1], height, "D", color=colour, markersize=6.5)
                axes.plot(pair[0], height, "o", color=colour, markersize=4, markerfacecolor="white")
        for mark, fill, name in (
            ("o", "white", "one pass over the block, as usual"),
            ("D", INK, "prefix by prefix, the future hidden"),
        ):
            axes.plot([], [], mark, color=INK, markerfacecolor=fill, markersize=4.5, label=name)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7) if high < 30 * low else (1,)))
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set(title="What the future was worth", xlabel="perplexity on the same validation blocks")
        figure.legend(loc="outside lower center", ncols=2)
        return figure


def lengths(rows: Sequence[LengthLosses], tested: Sequence[int], trained: int) -> Any:
    """Loss by the length of the test sequence, and by position in the longest one."""
    styles = style_of([row.label for row in rows])
    bin_size = max(1, max(tested) // 20)
    with styled():
        figure, panels = subplots(1, 2, figsize=(10.5, 4.2))
        shown: list[Mean] = []
        for n, row in enumerate(rows):
            reached, means = list(row.by_length), list(row.by_length.values())
            aside = (n - len(rows) / 2) * 0.006 * max(tested)  # so that bars at one length do not hide each other
            name = row.label if reached == list(tested) else f"{row.label} (cannot go beyond)"
            panels[0].errorbar(
                [length + aside for length in reached],
                [mean.mean for mean in means],
                [mean.half_width or 0.0 for mean in means],
                marker="o",
                markersize=4,
                capsize=3,
                label=name,
                **styles[row.label],
            )
            if reached:
                middles, binned = _bins(row.by_position, bin_size)
                _band(panels[1], middles, binned, row.label, styles[row.label])
                shown += binned
        _show(panels[1], shown)
        panels[0].set(title="by length of the test blocks", xlabel="tokens per block", ylabel="loss, nats per token")
        panels[0].set_xticks(list(tested))
        panels[1].set(title="by position in the longest block", xlabel=f"position (means of {bin_size})")
        panels[1].axvline(trained, color=INK, linestyle=":", linewidth=1)
        panels[1].annotate(
            "trained up to here",
            (trained, 0.98),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            rotation=90,
            va="top",
            ha="right",
            color=INK,
        )
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
        return figure


def _bins(means: Sequence[Mean], size: int) -> tuple[list[float], list[Mean]]:
    """Neighbouring positions averaged within each seed, so that the band stays one over seeds."""
    starts = range(0, len(means) - size + 1, size)
    seeds = range(means[0].count)
    binned = [
        Mean(tuple(sum(mean.values[seed] for mean in means[start : start + size]) / size for seed in seeds))
        for start in starts
    ]
    return [start + size / 2 for start in starts], binned
