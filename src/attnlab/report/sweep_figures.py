"""Figures of a sweep: the landscape over two settings, all settings side by side, and the scores over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

from attnlab.config.axes import Axis, Choices, short_names, show
from attnlab.report.figures import COLOURS, styled, subplots
from attnlab.stats.intervals import Mean, Measure

GREY, INK = "#a0aec0", "#2d3748"
MAP = "viridis"


class SweptRow(Protocol):
    """One cell of a sweep."""

    folder: str
    settings: Mapping[str, Any]
    state: str
    number: int


class SweptResults(Protocol):
    """The part of a sweep's results that the figures need."""

    @property
    def axes(self) -> Mapping[str, Axis]: ...

    @property
    def rows(self) -> Sequence[Any]: ...

    @property
    def finished(self) -> Sequence[Any]: ...

    @property
    def best(self) -> Any: ...

    @property
    def measure(self) -> Measure: ...

    def score(self, row: Any) -> Mean: ...


def landscape(results: SweptResults, names: Sequence[str]) -> Any:
    """The mean on dev over the one or two settings named; the best over all others."""
    with styled():
        if len(names) == 1:
            return _line(results, names[0])
        if all(isinstance(results.axes[name], Choices) for name in names):
            return _heat(results, names[0], names[1])
        return _scatter(results, names[0], names[1])


def _line(results: SweptResults, name: str) -> Any:
    figure, axes = subplots(figsize=(6.4, 3.6))
    axis, rows = (
        results.axes[name],
        sorted(results.finished, key=lambda row: results.axes[name].place(row.settings[name])),
    )
    xs = [axis.place(row.settings[name]) for row in rows]
    axes.errorbar(
        xs,
        [results.score(row).mean for row in rows],
        [results.score(row).half_width or 0.0 for row in rows],
        marker="o",
        capsize=4,
        color=COLOURS[0],
        linestyle="-" if axis.numeric else "none",
    )
    _ticks(axes.xaxis, axis)
    axes.set(xlabel=name, ylabel=results.measure.title, xlim=(-0.08, 1.08))
    _per_cent(axes.yaxis, results)
    return figure


def _heat(results: SweptResults, across: str, up: str) -> Any:
    columns, lines = (_values(results.axes[name]) for name in (across, up))
    best: dict[tuple[int, int], Any] = {}
    for row in results.finished:
        place = (lines.index(row.settings[up]), columns.index(row.settings[across]))
        if place not in best or results.measure.sign * (results.score(row).mean - results.score(best[place]).mean) > 0:
            best[place] = row
    figure, axes = subplots(figsize=(1.9 + 1.15 * len(columns), 1.6 + 0.62 * len(lines)))
    values = [
        [results.score(best[i, j]).mean if (i, j) in best else float("nan") for j in range(len(columns))]
        for i in range(len(lines))
    ]
    image: Any = axes.imshow(values, cmap=_colours(results), aspect="auto", origin="lower")
    for (i, j), row in best.items():
        share = image.norm(results.score(row).mean)
        light = (share if results.measure.sign > 0 else 1 - share) < 0.55
        half = (
            f"\n± {results.score(row).half_width:{results.measure.form}}"
            if results.score(row).half_width is not None
            else ""
        )
        chosen = results.best is not None and row is results.best
        axes.text(
            j,
            i,
            f"{results.score(row).mean:{results.measure.form}}{half}",
            ha="center",
            va="center",
            color="white" if light else "black",
            fontweight="bold" if chosen else "normal",
        )
        if chosen:
            axes.add_patch(Rectangle((j - 0.47, i - 0.47), 0.94, 0.94, fill=False, edgecolor=COLOURS[4], lw=2.5))
    axes.set_xticks(range(len(columns)), [show(value) for value in columns])
    axes.set_yticks(range(len(lines)), [show(value) for value in lines])
    axes.grid(visible=False)
    rest = ", best over the rest" if len(results.axes) > 2 else ""
    axes.set(xlabel=across, ylabel=up, title=f"{results.measure.title.capitalize()}{rest}")
    return figure


def _scatter(results: SweptResults, across: str, up: str) -> Any:
    figure, axes = subplots(figsize=(6.4, 4.2))
    places = {
        row.folder: [results.axes[name].place(row.settings[name]) for name in (across, up)] for row in results.rows
    }
    others = [places[row.folder] for row in results.rows if row.state == "pruned"]
    axes.plot(*zip(*others, strict=True) if others else ([], []), "x", color=GREY, label="pruned", linestyle="none")
    rows = results.finished
    xs, ys = zip(*[places[row.folder] for row in rows], strict=True)
    dots = axes.scatter(
        xs, ys, s=60, c=[results.score(row).mean for row in rows], cmap=_colours(results), edgecolor="white"
    )
    if results.best is not None:
        axes.plot(
            *places[results.best.folder],
            "o",
            markersize=13,
            markerfacecolor="none",
            markeredgewidth=2,
            color=COLOURS[4],
            label="best",
        )
    for side, name in ((axes.xaxis, across), (axes.yaxis, up)):
        _ticks(side, results.axes[name])
    _bar(figure, axes, dots, results)
    axes.set(xlabel=across, ylabel=up, xlim=(-0.06, 1.06), ylim=(-0.06, 1.06))
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def parallel(results: SweptResults) -> Any:
    """Every cell as a line over all settings, coloured by its score; the best on top, thick."""
    names = list(results.axes)
    with styled():
        figure, axes = subplots(figsize=(1.6 + 1.9 * (len(names) + 1), 4.0))
        scores = [results.score(row).mean for row in results.finished]
        norm = Normalize(min(scores), max(scores))
        mapping: Any = ScalarMappable(norm, _colours(results))
        for row in [row for row in results.rows if row.state == "pruned"]:
            axes.plot(range(len(names)), _places(results, row), color=GREY, linewidth=1.3, linestyle=":")
        worst_first = sorted(results.finished, key=lambda row: results.measure.sign * results.score(row).mean)
        for row in worst_first:
            top = row is results.best
            ys = [*_places(results, row), float(norm(results.score(row).mean)) if len(set(scores)) > 1 else 0.5]
            axes.plot(
                range(len(ys)),
                ys,
                color=mapping.to_rgba(results.score(row).mean),
                linewidth=3 if top else 1.4,
                alpha=1 if top else 0.75,
            )
        for place, name in enumerate(names):
            _side(axes, place, [(y, text) for y, text in _marks(results.axes[name])])
        ends = sorted({min(scores), max(scores)})
        _side(
            axes, len(names), [(float(norm(v)) if len(ends) > 1 else 0.5, f"{v:{results.measure.form}}") for v in ends]
        )
        short = short_names(names)
        axes.set_xticks(range(len(names) + 1), [*[short[name] for name in names], results.measure.title])
        axes.set(xlim=(-0.35, len(names) + 0.45), ylim=(-0.06, 1.06))
        axes.set_yticks([])
        axes.grid(visible=False)
        for spine in ("left", "bottom"):
            axes.spines[spine].set_visible(False)
        return figure


def way(results: SweptResults) -> Any:
    """The score of each trial in the order they were started, and the best so far."""
    with styled():
        figure, axes = subplots(figsize=(6.4, 3.4))
        rows = results.finished
        axes.plot(
            [row.number for row in rows],
            [results.score(row).mean for row in rows],
            "o",
            color=COLOURS[0],
            label="trial",
            alpha=0.75,
        )
        axes.step(*_best_so_far(results), where="post", color=COLOURS[1], label="best so far")
        pruned = [row.number for row in results.rows if row.state == "pruned"]
        if pruned:
            axes.plot(
                pruned, [0.03] * len(pruned), "x", color=GREY, transform=axes.get_xaxis_transform(), label="pruned"
            )
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="trial", ylabel=results.measure.title)
        _per_cent(axes.yaxis, results)
        axes.legend()
        return figure


def _best_so_far(results: SweptResults) -> tuple[list[int], list[float]]:
    """The best mean after each trial that finished."""
    done = sorted((row for row in results.rows if row.state == "finished"), key=lambda row: row.number)
    values = [results.score(row).mean for row in done]
    choose = max if results.measure.sign > 0 else min
    return [row.number for row in done], [choose(values[: n + 1]) for n in range(len(values))]


def weights(importance: Mapping[str, float]) -> Any:
    """The importance of each setting."""
    with styled():
        figure, axes = subplots(figsize=(6.4, 1.0 + 0.4 * len(importance)))
        axes.barh(list(importance)[::-1], list(importance.values())[::-1], color=COLOURS[0], height=0.6)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.grid(axis="y", visible=False)
        axes.set(xlim=(0, 1), xlabel="share of the importance")
        return figure


def _values(axis: Axis) -> list[Any]:
    return axis.ordered if isinstance(axis, Choices) else []


def _places(results: SweptResults, row: SweptRow) -> list[float]:
    return [axis.place(row.settings[name]) for name, axis in results.axes.items()]


def _marks(axis: Axis) -> list[tuple[float, str]]:
    if isinstance(axis, Choices):
        return [(axis.place(value), show(value)) for value in axis.values]
    middle = (axis.low * axis.high) ** 0.5 if axis.log else (axis.low + axis.high) / 2
    return [(axis.place(value), f"{value:.3g}") for value in (axis.low, middle, axis.high)]


def _side(axes: Any, place: float, marks: Sequence[tuple[float, str]]) -> None:
    axes.axvline(place, color=INK, linewidth=1)
    for y, text in marks:
        axes.annotate(
            text,
            (place, y),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        )


def _ticks(side: Any, axis: Axis) -> None:
    places, texts = zip(*_marks(axis), strict=True)
    side.set_ticks(places, texts)
    side.set_minor_locator(NullLocator())


def _colours(results: SweptResults) -> str:
    """Bright is better."""
    return MAP if results.measure.sign > 0 else f"{MAP}_r"


def _bar(figure: Any, axes: Any, dots: Any, results: SweptResults) -> None:
    shown = FuncFormatter(lambda value, _: f"{value:{results.measure.form}}")
    figure.colorbar(dots, ax=axes, label=results.measure.title, format=shown)


def _per_cent(side: Any, results: SweptResults) -> None:
    if results.measure.share:
        side.set_major_formatter(PercentFormatter(1.0))
