"""Figures of a comparison: the final measure of each variant, and its dependence on a setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.ticker import NullLocator, PercentFormatter

from attnlab.report.figures import COLOURS, styled, subplots
from attnlab.report.series import MeasuredRow
from attnlab.stats.intervals import Measure

INK, ALARM = "#2d3748", "#c53030"
DASHES = ("-", "--", ":")


def style_of(labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """One colour per variant, the same in every figure; when they run out, another dash."""
    return {
        label: {"color": COLOURS[n % len(COLOURS)], "linestyle": DASHES[n // len(COLOURS) % len(DASHES)]}
        for n, label in enumerate(labels)
    }


def endings(rows: Sequence[MeasuredRow], measure: Measure) -> Any:
    """The ranking measure: the mean of every variant with its interval, and one tick per run."""
    with styled():
        figure, axes = subplots(figsize=(7.2, 1.1 + 0.34 * len(rows)))
        shown: list[float] = []
        for place, row in enumerate(rows):
            colour = ALARM if row.objection else COLOURS[0]
            mean = row.mean(measure.name)
            axes.plot(mean.values, [place] * mean.count, "|", color=colour, alpha=0.6, markersize=9)
            axes.errorbar(
                mean.mean,
                place,
                xerr=mean.half_width,
                fmt="o",
                color=colour,
                capsize=4,
                markersize=6,
                markerfacecolor="white" if row.objection else colour,
            )
            shown += mean.values
            shown += () if row.objection or mean.interval is None else mean.interval
        axes.set_yticks(range(len(rows)), [_marked(row) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        room = 0.05 * (max(shown) - min(shown)) + 0.001
        axes.set_xlim(min(shown) - room, max(shown) + room)  # the spread of a leak must not squeeze the others
        axes.grid(axis="y", visible=False)
        axes.set(title=measure.title.capitalize(), xlabel=measure.unit)
        return figure


def _marked(row: MeasuredRow) -> str:
    return f"{row.label}\nnot comparable" if row.objection else row.label


def bars(rows: Sequence[MeasuredRow], measures: Sequence[Measure]) -> Any:
    """One bar per variant and measure, with the interval over seeds and one tick per run."""
    height = 0.8 / len(measures)
    with styled():
        figure, axes = subplots(figsize=(7.2, 1.3 + 0.3 * len(measures) * len(rows)))
        for n, (measure, colour) in enumerate(zip(measures, COLOURS, strict=False)):
            places = [place + (n - (len(measures) - 1) / 2) * height for place in range(len(rows))]
            means = [row.mean(measure.name) for row in rows]
            axes.barh(
                places,
                [mean.mean for mean in means],
                height * 0.9,
                color=colour,
                alpha=0.55,
                xerr=[mean.half_width or 0.0 for mean in means],
                capsize=3,
                ecolor=INK,
                label=measure.title,
            )
            for place, mean in zip(places, means, strict=True):
                axes.plot(mean.values, [place] * mean.count, "|", color=INK, alpha=0.7, markersize=6)
        axes.set_yticks(range(len(rows)), [_marked(row) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top
        axes.grid(axis="y", visible=False)
        if all(measure.share for measure in measures):
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axes.set_xlim(0, 1)
        figure.legend(loc="outside lower center", ncols=len(measures))
        return figure


Line = Mapping[float, MeasuredRow]
"""The rows of one line, by the value of the setting."""


def along(
    lines: Mapping[str, Line],
    measures: Sequence[Measure],
    axis: str,
    values: Sequence[float],
    baselines: Mapping[str, float | None],
) -> Any:
    """Measures over a setting, with intervals over seeds; one panel per measure if there are several lines."""
    panels = [list(measures)] if len(lines) == 1 else [[measure] for measure in measures]
    with styled():
        width = 6.4 if len(panels) == 1 else 4.2 * len(panels)
        figure, drawn = subplots(1, len(panels), figsize=(width, 3.8), squeeze=False)
        for axes, shown in zip(drawn[0], panels, strict=True):
            curves = [(measure, name, line) for measure in shown for name, line in lines.items()]
            for n, (measure, name, line) in enumerate(curves):
                label = measure.title if len(lines) == 1 else name
                aside = _aside(values, n - (len(curves) - 1) / 2)
                _curve(axes, line, measure, label, COLOURS[n % len(COLOURS)], aside)
            levels = [level for measure in reversed(shown) if (level := baselines.get(measure.name)) is not None]
            for level in levels[:1]:
                axes.axhline(level, color="#4a5568", linestyle=":", label="baseline")
            _scale(axes, values)
            axes.set(xlabel=axis, title="" if len(lines) == 1 else shown[0].title)
            if all(measure.share for measure in shown):
                axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if all(measure.share for measure in measures):  # from 0 to the highest value, the same in all panels
            top = max(axes.get_ylim()[1] for axes in drawn[0])
            for axes in drawn[0]:
                axes.set_ylim(0, min(1.02, top))
        handles, labels = drawn[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        return figure


def _aside(values: Sequence[float], places: float) -> Callable[[float], float]:
    """Where to draw a value: each line a little beside the others, so that error bars do not overlap."""
    if _by_powers(values):
        return lambda value: value * (max(values) / min(values)) ** (0.012 * places)
    return lambda value: value + 0.012 * places * (max(values) - min(values))


def _curve(axes: Any, line: Line, measure: Measure, label: str, colour: str, aside: Callable[[float], float]) -> None:
    means = {value: mean for value, row in sorted(line.items()) if (mean := row.mean(measure.name)).count}
    xs = [aside(value) for value in means]
    axes.errorbar(
        xs,
        [mean.mean for mean in means.values()],
        [mean.half_width or 0.0 for mean in means.values()],
        marker="o",
        markersize=4.5,
        capsize=4,
        color=colour,
        label=label,
        linestyle="--" if measure.split == "dev" else "-",
    )
    for x, mean in zip(xs, means.values(), strict=True):
        axes.plot([x] * mean.count, mean.values, "_", color=colour, alpha=0.6, markersize=8)


def _by_powers(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) >= 8 * min(values)


def _scale(axes: Any, values: Sequence[float]) -> None:
    """A logarithmic axis where the values spread like powers."""
    if _by_powers(values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(sorted(values), [f"{value:g}" for value in sorted(values)])
