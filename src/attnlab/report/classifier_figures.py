"""Figures of a comparison of classifiers: accuracies as bars, accuracy against time, accuracy by epoch."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from attnlab.report.comparison_figures import ALARM, INK
from attnlab.report.figures import COLOURS, styled, subplots
from attnlab.report.series import AccuracyCurve, MeasuredRow
from attnlab.stats.intervals import Mean, Measure

HATCH, GREY = "////", "#4a5568"
MARKS = ("o", "s", "D")
PERCENT = PercentFormatter(1.0, decimals=0)


def bars(rows: Sequence[MeasuredRow], measures: Sequence[Measure], collapsed: Collection[str]) -> Any:
    """One bar for dev and one for test, with intervals over seeds; a variant without runs is at 0, with its reason."""
    height = 0.8 / len(measures)
    with styled():
        figure, axes = subplots(figsize=(7.6, 1.4 + (0.3 * len(measures) + 0.1) * len(rows)))
        for n, (measure, colour) in enumerate(zip(measures, COLOURS, strict=False)):
            for place, row in enumerate(rows):
                y = place + (n - (len(measures) - 1) / 2) * height
                _bar(axes, y, height, row.mean(measure.name), colour, row.label in collapsed)
        for place, row in enumerate(rows):
            if row.reason:
                reason = textwrap.fill(f"0: {row.reason}", 88, max_lines=len(measures) + 1)
                axes.text(0.01, place, reason, va="center", fontsize=7.5, color=ALARM)
        handles = [
            Patch(color=colour, alpha=0.6, label=measure.title)
            for measure, colour in zip(measures, COLOURS, strict=False)
        ]
        if collapsed:
            handles.append(Patch(facecolor="white", edgecolor=INK, hatch=HATCH, label="a seed collapsed"))
        handles += _baselines(axes, rows, measures)
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter(PERCENT)
        axes.set(xlim=(0, 1.12), xticks=[n / 5 for n in range(6)], xlabel="accuracy")
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        return figure


def _bar(axes: Any, place: float, height: float, mean: Mean, colour: str, collapsed: bool) -> None:
    value = mean.mean if mean.count else 0.0
    low, high = mean.interval or (value, value)
    within = [[value - max(0.0, low)], [min(1.0, high) - value]]  # a share is between 0 and 1
    axes.barh(
        place,
        value,
        height * 0.9,
        color=colour,
        alpha=0.6,
        xerr=within if mean.interval else None,
        capsize=3,
        ecolor=INK,
        hatch=HATCH if collapsed else None,
        edgecolor="white",
    )
    axes.plot(mean.values, [place] * mean.count, "|", color=INK, alpha=0.6, markersize=5)
    if mean.count:
        axes.text(1.12, place, f"{value:.1%}", va="center", ha="right", fontsize=8, color=INK)


def _baselines(axes: Any, rows: Sequence[MeasuredRow], measures: Sequence[Measure]) -> list[Any]:
    """The accuracy of the most common class: one line per split, or one where they agree."""
    by_split = {
        m.split: values for m in measures if (values := [v for r in rows for v in r.by_seed(m.baseline).values()])
    }
    levels: dict[str, float] = {split: sum(values) / len(values) for split, values in by_split.items()}
    if len({round(level, 3) for level in levels.values()}) == 1:
        levels = {"": next(iter(levels.values()))}
    return [
        axes.axvline(
            level,
            color=GREY,
            linestyle=dash,
            linewidth=1.2,
            label=f"most common class{f', {split}' if split else ''} ({level:.1%})",
        )
        for (split, level), dash in zip(levels.items(), ("--", ":"), strict=False)
    ]


def worth(rows: Sequence[MeasuredRow], measure: Measure, chosen: str | None, collapsed: Collection[str]) -> Any:
    """Accuracy against the time of a run, with intervals over seeds; a dashed line joins the Pareto front."""
    with styled():
        figure, axes = subplots(figsize=(8.2, 4.2))
        shown: list[tuple[float, float]] = []
        for n, row in enumerate(rows):
            score, seconds, colour = row.mean(measure.name), row.mean("seconds"), COLOURS[n % len(COLOURS)]
            left = min(seconds.half_width or 0.0, 0.9 * seconds.mean)  # a logarithmic axis has no zero
            axes.errorbar(
                seconds.mean,
                score.mean,
                score.half_width,
                [[left], [seconds.half_width or 0.0]],
                fmt=MARKS[n // len(COLOURS) % len(MARKS)],
                color=colour,
                capsize=3,
                markersize=6,
                elinewidth=1,
                markerfacecolor="white" if row.label in collapsed else colour,
                label=f"{row.label} (a seed collapsed)" if row.label in collapsed else row.label,
            )
            shown += zip(seconds.values, score.values, strict=True)
        front = pareto([(row.mean("seconds").mean, row.mean(measure.name).mean) for row in rows])
        axes.plot(
            *zip(*front, strict=True),
            color=GREY,
            linestyle="--",
            linewidth=1,
            zorder=0,
            label="nothing is better\nand cheaper",
        )
        for row in (row for row in rows if row.label == chosen):
            axes.plot(
                row.mean("seconds").mean,
                row.mean(measure.name).mean,
                "o",
                color=INK,
                markersize=14,
                markerfacecolor="none",
                linestyle="",
                label="best for the money,\nby dev",
            )
        axes.set_xscale("log")
        costs, scores = zip(*shown, strict=True)
        axes.set_xlim(
            min(costs) / 1.6, max(costs) * 1.6
        )  # fitted to the runs: one wide interval must not squeeze the rest
        axes.set_ylim(max(0.0, min(scores) - 0.05), min(1.02, max(scores) + 0.05))
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(PERCENT)
        axes.set(xlabel="seconds per run (logarithmic)", ylabel=measure.title)
        figure.legend(loc="outside right center", labelspacing=0.9)
        return figure


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The (cost, score) points that no other beats in both, by cost."""
    front: list[tuple[float, float]] = []
    for cost, score in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or score > front[-1][1]:
            front.append((cost, score))
    return front


def courses(curves: Sequence[AccuracyCurve], baseline: float | None) -> Any:
    """Accuracy on train and dev by epoch, one panel per variant, with bands over seeds."""
    columns = 2 if len(curves) == 4 else min(3, len(curves))
    lines = -(-len(curves) // columns)
    with styled():
        figure, panels = subplots(
            lines, columns, figsize=(1.2 + 3.1 * columns, 0.9 + 2.5 * lines), sharey=True, squeeze=False
        )
        for axes, curve in zip(panels.flat, curves, strict=False):
            for (split, means), colour in zip(curve.by_split.items(), (COLOURS[1], COLOURS[0]), strict=False):
                _line(axes, curve.epochs, means, split, colour)
            if baseline is not None:
                axes.axhline(baseline, color=GREY, linestyle=":", linewidth=1, label="most common class")
            axes.set_title(curve.title, fontsize=9.5)
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.yaxis.set_major_formatter(PERCENT)
        for axes in panels.flat[len(curves) :]:
            axes.set_visible(False)
        for line in panels:
            line[0].set_ylabel("accuracy")
        values = [mean.mean for curve in curves for means in curve.by_split.values() for mean in means]
        panels[0][0].set_ylim(max(0.0, min([*values, baseline or 1.0]) - 0.05), 1.01)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        return figure


def _line(axes: Any, epochs: Sequence[float], means: Sequence[Mean], name: str, colour: str) -> None:
    axes.plot(epochs, [mean.mean for mean in means], color=colour, marker="o", markersize=3, linewidth=1.6, label=name)
    if means and all(mean.interval for mean in means):
        lows, highs = zip(*[mean.interval or (0.0, 0.0) for mean in means], strict=True)
        axes.fill_between(
            epochs,
            [max(0.0, low) for low in lows],
            [min(1.0, high) for high in highs],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
