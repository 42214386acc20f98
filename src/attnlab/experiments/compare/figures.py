"""The pictures of a comparison: where each variant ends, and how that depends on a setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator, PercentFormatter

from attnlab.config import find_setting
from attnlab.jobs.measures import Measure
from attnlab.config.recipe import Key
from attnlab.experiments.compare.cells import called
from attnlab.experiments.compare.results import Results, Row
from attnlab.jobs.registry import config_of
from attnlab.report.figures import COLOURS, STYLE

INK, ALARM = "#2d3748", "#c53030"
DASHES = ("-", "--", ":")


def style_of(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """A colour a variant, the same in every picture; when they run out, another dash."""
    return {
        row.label: {"color": COLOURS[n % len(COLOURS)], "linestyle": DASHES[n // len(COLOURS) % len(DASHES)]}
        for n, row in enumerate(rows)
    }


def endings(rows: Sequence[Row], measure: Measure) -> Any:
    """The measure that ranks: the mean of every variant with its interval, and each run."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 1.1 + 0.34 * len(rows)))
        shown: list[float] = []
        for place, row in enumerate(rows):
            colour = ALARM if row.objection else COLOURS[0]
            mean = row.mean(measure.name)
            axes.plot(mean.values, [place] * len(row.runs), "|", color=colour, alpha=0.6, markersize=9)
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


def _marked(row: Row) -> str:
    return f"{row.label}\nnot comparable" if row.objection else row.label


def bars(rows: Sequence[Row], measures: Sequence[Measure]) -> Any:
    """Every variant with a bar for each measure, the interval over seeds, and a tick for each run."""
    height = 0.8 / len(measures)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 1.3 + 0.3 * len(measures) * len(rows)))
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


def numeric_axis(config: Any) -> str | None:
    """The first varied setting that is a number: it makes a curve."""
    return next(
        (name for name, values in config.compare.vary.items() if len(values) > 1 and all(map(_number, values))), None
    )


def _number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def along(results: Results, measures: Sequence[Measure], axis: str) -> Any:
    """Measures over a setting, with intervals over seeds; a panel for each measure if there are several lines."""
    key = find_setting(config_of(results.config.compare.job), axis)
    lines: dict[str, list[Row]] = {}
    for row in results.rows:
        if row.runs:
            rest = [choice for choice in row.variant.choices if choice != called(axis, row.variant.settings[key])]
            lines.setdefault(", ".join(rest), []).append(row)
    panels = [list(measures)] if len(lines) == 1 else [[measure] for measure in measures]
    with plt.rc_context(STYLE):
        figure, drawn = plt.subplots(
            1, len(panels), figsize=(6.4 if len(panels) == 1 else 4.2 * len(panels), 3.8), squeeze=False
        )
        for axes, shown in zip(drawn[0], panels, strict=True):
            curves = [(measure, name, rows) for measure in shown for name, rows in lines.items()]
            values = [float(value) for value in results.config.compare.vary[axis]]
            for n, (measure, name, rows) in enumerate(curves):
                label = measure.title if len(lines) == 1 else name
                aside = _aside(values, n - (len(curves) - 1) / 2)
                _curve(axes, rows, key, measure, label, COLOURS[n % len(COLOURS)], aside)
            _baseline(axes, results, shown)
            _scale(axes, values)
            axes.set(xlabel=axis, title="" if len(lines) == 1 else shown[0].title)
            if all(measure.share for measure in shown):
                axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if all(measure.share for measure in measures):  # from nothing up to what is there, alike in all panels
            top = max(axes.get_ylim()[1] for axes in drawn[0])
            for axes in drawn[0]:
                axes.set_ylim(0, min(1.02, top))
        handles, labels = drawn[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        return figure


def _aside(values: Sequence[float], places: float) -> Callable[[float], float]:
    """Where to draw a value of the setting: each line a little beside the others, so that their bars can be seen."""
    if _by_powers(values):
        return lambda value: value * (max(values) / min(values)) ** (0.012 * places)
    return lambda value: value + 0.012 * places * (max(values) - min(values))


def _curve(
    axes: Any, rows: Sequence[Row], key: Key, measure: Measure, label: str, colour: str, aside: Callable[[float], float]
) -> None:
    rows = sorted(
        (row for row in rows if row.mean(measure.name).count), key=lambda row: float(row.variant.settings[key])
    )
    xs, means = [aside(float(row.variant.settings[key])) for row in rows], [row.mean(measure.name) for row in rows]
    axes.errorbar(
        xs,
        [mean.mean for mean in means],
        [mean.half_width or 0.0 for mean in means],
        marker="o",
        markersize=4.5,
        capsize=4,
        color=colour,
        label=label,
        linestyle="--" if measure.split == "dev" else "-",
    )
    for x, mean in zip(xs, means, strict=True):
        axes.plot([x] * mean.count, mean.values, "_", color=colour, alpha=0.6, markersize=8)


def _baseline(axes: Any, results: Results, measures: Sequence[Measure]) -> None:
    """What knowing nothing scores, from the last measure that has such a thing."""
    for measure in reversed(measures):
        values = [value for row in results.finished for value in row.by_seed(measure.baseline).values()]
        if values:
            axes.axhline(sum(values) / len(values), color="#4a5568", linestyle=":", label="knowing nothing")
            return


def _by_powers(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) >= 8 * min(values)


def _scale(axes: Any, values: Sequence[float]) -> None:
    """A logarithmic axis where the values spread like powers."""
    if _by_powers(values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(sorted(values), [f"{value:g}" for value in sorted(values)])
