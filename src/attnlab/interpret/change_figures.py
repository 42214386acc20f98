"""Figures of ablation, tracing and the lens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.explore.figures.canvas import INK, MUTED, OTHER, SECOND, caption, heatmap, legend, sheet
from attnlab.interpret.ablation import Ablation, Curve
from attnlab.interpret.asked_people import PARTS
from attnlab.interpret.lens import QuestionLens, TextLens, shown_token
from attnlab.interpret.tracing import Trace, layer_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SITE_TITLES = {"stream": "residual stream", "attention": "attention output", "mlp": "MLP output"}
MOST_TOKENS = 40  # of a text in a figure


def draw_trace(trace: Trace) -> Figure:
    """The effect of restoring each layer and part of the question, one panel per site."""
    sites = trace.options.sites
    unit = "P" if trace.options.measure == "probability" else "log-odds"
    title = f"{unit}: clean {trace.clean.mean:.2f}, corrupted {trace.corrupted.mean:.2f}, {trace.people} people"
    figure, panels = sheet(len(sites), title, width=4.6 * len(sites) + 0.6, height=4.2)
    reach = max(abs(cell.effect.mean) for cell in trace.cells)
    for panel, site in zip(panels, sites, strict=True):
        _by_part(panel, {(c.layer, c.part): c.effect.mean for c in trace.cells if c.site == site}, reach)
        caption(panel, f"restored: {SITE_TITLES[site]}", y="layer")
    return figure


def draw_question_lens(lens: QuestionLens) -> Figure:
    """How readable the right answer is after each layer at each part of the question."""
    figure, panels = sheet(2, f"The right answer through the lens, {lens.people} people", width=10.4, height=4.2)
    shares = (
        ("probability among all tokens", {(c.layer, c.part): c.probability.mean for c in lens.cells}),
        (f"share first of {lens.answers} answers", {(c.layer, c.part): c.first_answer.share for c in lens.cells}),
    )
    for panel, (title, values) in zip(panels, shares, strict=True):
        _by_part(panel, values, 1.0)
        caption(panel, title, y="after layer")
    return figure


def _by_part(panel: Axes, values: Mapping[tuple[int, str], float], reach: float) -> None:
    """A heat map of values by layer and part, the last layer on top, without the parts that no question has."""
    layers = sorted({layer for layer, _ in values}, reverse=True)
    present = [n for n, part in enumerate(PARTS) if (layers[0], part) in values]
    matrix = np.array([[values[layer, PARTS[n]] for n in present] for layer in layers])
    heatmap(panel, matrix, reach, digits=2 if reach >= 0.1 else 3)
    panel.set_xticks(range(len(present)), [PARTS[n].replace(" ", "\n", 1) for n in present], fontsize=8)
    panel.set_yticks(range(len(layers)), [layer_name(layer) for layer in layers])


def draw_text_lens(lens: TextLens) -> Figure:
    """The probability of the true next token in colour, with the most probable token after each layer."""
    count = min(len(lens.tokens), MOST_TOKENS)
    layers = sorted({view.layer for view in lens.views})
    views = {(view.layer, view.position): view for view in lens.views}
    chosen = [[views[layer, position] for position in range(count)] for layer in reversed(layers)]
    figure, (panel,) = sheet(1, "What would follow, layer by layer", 1.8 + 0.75 * count, 1.9 + 0.42 * len(layers))
    colours = np.array([[np.nan if v.probability is None else v.probability for v in row] for row in chosen])
    image = panel.imshow(np.ma.masked_invalid(colours), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, of_layer in enumerate(chosen):
        for column, view in enumerate(of_layer):
            dark = view.probability is not None and view.probability > 0.6
            text = panel.text(column, row, _short(shown_token(view.best)), ha="center", va="center", fontsize=8)
            text.set(color="white" if dark else INK, parse_math=False)
    panel.set_xticks(
        range(count), [_short(shown_token(token)) for token in lens.tokens[:count]], rotation=45, ha="right"
    )
    for label in panel.get_xticklabels():
        label.set_parse_math(False)
    panel.set_yticks(range(len(layers)), [layer_name(layer) for layer in reversed(layers)])
    panel.tick_params(length=0)
    figure.colorbar(image, ax=panel, label="P of the true next token", pad=0.01)
    caption(panel, "", y="after layer")
    return figure


def _short(token: str) -> str:
    return token if len(token) <= 10 else token[:9] + "…"


def draw_ablation(ablation: Ablation, curve: Curve | None = None) -> Figure:
    """The change without each part, the most harmful on top, and the curve of many heads removed."""
    shown = ablation.effects[:24]
    figure, panels = sheet(
        2 if curve else 1,
        f"Removed by {ablation.how}: {ablation.examples} examples",
        width=10.0 if curve else 5.6,
        height=max(3.7, 1.4 + 0.2 * len(shown)),
    )
    means = [effect.changes[ablation.main] for effect in shown]
    half = [mean.half_width or 0.0 for mean in means]
    at = list(range(len(shown)))
    panels[0].barh(at, [mean.mean for mean in means], xerr=half, color=OTHER, ecolor=INK, capsize=2)
    panels[0].set_yticks(at, [str(effect.part) for effect in shown])
    panels[0].invert_yaxis()
    panels[0].axvline(0, color=MUTED, linewidth=0.8)
    what = "layer.head" if all(effect.part.what == "head" for effect in ablation.effects) else "part"
    caption(panels[0], "one part removed", f"change of {ablation.main}", what)
    if curve is not None:
        _draw_curve(panels[1], curve)
    return figure


def draw_curve(curve: Curve) -> Figure:
    figure, (panel,) = sheet(1, f"Removed by {curve.how}", width=5.6)
    _draw_curve(panel, curve)
    return figure


def _draw_curve(panel: Axes, curve: Curve) -> None:
    xs = [point.removed for point in curve.points]
    panel.plot(xs, [point.value for point in curve.points], "o-", color=OTHER, markersize=3.5, label="by effect")
    intervals = [point.interval or (point.value, point.value) for point in curve.points]
    panel.fill_between(xs, [low for low, _ in intervals], [high for _, high in intervals], color=OTHER, alpha=0.2)
    random = [point.random for point in curve.points]
    panel.plot(xs, [mean.mean for mean in random], "s--", color=SECOND, markersize=3, label="random orders")
    bounds = [mean.interval or (mean.mean, mean.mean) for mean in random]
    panel.fill_between(xs, [low for low, _ in bounds], [high for _, high in bounds], color=SECOND, alpha=0.15)
    if curve.measure == "accuracy":
        panel.set_ylim(-0.03, 1.03)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    caption(panel, f"many removed, {curve.measured_on} examples held out", "heads removed", curve.measure)
    legend(panel)
