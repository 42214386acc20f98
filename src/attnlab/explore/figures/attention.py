"""Keys, query, weights and output in one row of panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.explore.attend import Array
from attnlab.explore.figures.canvas import (
    CHOSEN,
    FAINT,
    INK,
    MUTED,
    OTHER,
    SECOND,
    caption,
    headroom,
    heatmap,
    legend,
    sheet,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attnlab.explore.exploration import QueryExploration
    from attnlab.explore.hard_attention import HardAttention
    from attnlab.explore.trying import TriedQuery


def one_query(result: QueryExploration) -> Figure:
    figure, (plane, bars, parts) = sheet(3, result.title, ratios=[1.25, 0.8, 1.0])
    query, weights = result.queries[0], result.weights[0]
    scatter_keys(plane, result.keys, query, weights, result.wanted[0] > 0)
    weight_bars(bars, weights, result.wanted[0] > 0)
    bars.plot(result.wanted[0], np.arange(len(weights)), "|", color=INK, ms=22, mew=2)
    caption(bars, "Weights (tick: wanted)", "weight")
    components(parts, result.outputs[0], result.targets[0])
    parts.set_title(f"Output, error {result.error:.2g}", fontsize=11, color=INK, loc="left")
    return figure


def own_query(result: TriedQuery) -> Figure:
    figure, (plane, bars, parts) = sheet(3, result.title, ratios=[1.25, 0.8, 1.0])
    largest = result.weights == result.weights.max()
    scatter_keys(plane, result.keys, result.query, result.weights, largest)
    weight_bars(bars, result.weights, largest)
    components(parts, result.output, result.target)
    if result.distance is not None:
        caption(parts, f"Output, distance {result.distance:.2g}", "component")
    return figure


def several_queries(result: QueryExploration) -> Figure:
    figure, (weights, outputs, targets) = sheet(3, f"{result.title} (error {result.error:.2g})", ratios=[1.2, 1, 1])
    limit = float(np.abs(np.r_[result.outputs, result.targets]).max())
    for panel, matrix, name, bound in (
        (weights, result.weights, "Weights, one row per query", 1.0),
        (outputs, result.outputs, "Outputs", limit),
        (targets, result.targets, "Targets", limit),
    ):
        heatmap(panel, matrix, bound)
        caption(panel, name)
        panel.set_yticks(range(len(matrix)), [f"q{i}" for i in range(len(matrix))])
        panel.set_xticks(
            range(matrix.shape[1]), [f"k{i}" if panel is weights else str(i) for i in range(matrix.shape[1])]
        )
    outputs.set_xlabel("component", fontsize=10)
    targets.set_xlabel("component", fontsize=10)
    return figure


def hard_and_soft(result: HardAttention) -> Figure:
    from attnlab.explore.hard_attention import SHARPNESS

    figure, (plane, bars, fading) = sheet(3, result.title, ratios=[1.2, 0.8, 1.1])
    hard = np.eye(len(result.keys))[result.winner]
    scatter_keys(plane, result.keys, result.query, result.soft_weights, hard > 0)
    places = np.arange(len(hard))
    bars.barh(places - 0.2, hard, 0.36, color=CHOSEN, label="argmax")
    bars.barh(places + 0.2, result.soft_weights, 0.36, color=OTHER, label="softmax")
    bars.set_yticks(places, [f"k{i}" for i in places])
    bars.invert_yaxis()
    bars.set_xlim(0, 1.05)
    caption(bars, "Weights", "weight")
    legend(bars, "lower right")
    fading.plot(SHARPNESS, result.fading, color=OTHER, lw=2, label="softmax(β q·k)")
    if result.hard_gradients["q"] is None:
        fading.plot([], [], color=CHOSEN, lw=2, label="argmax: none at a tie")
    else:
        fading.axhline(0, color=CHOSEN, lw=2, label="argmax: always 0")
    fading.axvline(1, color=MUTED, lw=1, ls=":")
    fading.set_xscale("log")
    caption(fading, "Gradient for the query", "factor β on the scores", "length of ∂‖c‖²/∂q")
    headroom(fading)
    legend(fading, "upper right")
    return figure


def scatter_keys(panel: Axes, keys: Array, query: Array, weights: Array, wanted: Array) -> None:
    """Keys in a plane that contains the query: further right is a higher score, larger is more weight."""
    points = plane_of(keys, query)
    along, across = points.T
    length = float(np.linalg.norm(query))
    colours = [CHOSEN if is_wanted else OTHER for is_wanted in wanted]
    panel.axhline(0, color=FAINT, lw=1)
    panel.axvline(0, color=FAINT, lw=1)
    if length > 0:
        panel.axvline(along.max(), color=MUTED, lw=1, ls=":")
        tip = max(float(along.max()), float(np.ptp(along)) / 2) * 0.75
        panel.annotate("", (tip, 0), (0, 0), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.8})
        panel.annotate(
            f"q, length {length:.3g}",
            (tip / 2, 0),
            (0, -13),
            textcoords="offset points",
            fontsize=9,
            color=INK,
            ha="center",
        )
    else:
        panel.annotate("q = 0", (0, 0), (6, 6), textcoords="offset points", fontsize=9, color=INK)
        panel.plot(0, 0, "+", color=INK)
    sizes = 45 + 320 * weights
    panel.scatter(along, across, s=sizes, c=colours, alpha=0.85, edgecolors="white", zorder=3)
    for index, (point, size) in enumerate(zip(points, sizes, strict=True)):
        above = 6 + np.sqrt(size) / 2  # sizes are areas in square points
        panel.annotate(f"k{index}", point, (0, above), textcoords="offset points", fontsize=9, color=INK, ha="center")
    panel.margins(0.18)
    panel.locator_params(axis="x", nbins=6)
    caption(
        panel,
        "Keys along the query" if length > 0 else "Keys",
        "score per unit of ‖q‖" if length > 0 else "first principal axis",
        "perpendicular" if length > 0 else "second principal axis",
    )


def plane_of(keys: Array, query: Array) -> Array:
    """Coordinates along the query, and along the perpendicular direction in which the keys vary most."""
    length = float(np.linalg.norm(query))
    if length == 0.0:
        _, _, axes = np.linalg.svd(keys - keys.mean(axis=0), full_matrices=False)
        first = axes[0]
    else:
        first = query / length
    rest = keys - np.outer(keys @ first, first)
    _, _, axes = np.linalg.svd(rest - rest.mean(axis=0), full_matrices=False)
    return np.c_[keys @ first, rest @ axes[0]]


def weight_bars(panel: Axes, weights: Array, coloured: Array) -> None:
    places = np.arange(len(weights))
    panel.barh(places, weights, 0.6, color=[CHOSEN if is_coloured else OTHER for is_coloured in coloured])
    panel.set_yticks(places, [f"k{i}" for i in places])
    panel.invert_yaxis()
    panel.set_xlim(0, 1.05)
    caption(panel, "Weights", "weight")


def components(panel: Axes, output: Array, target: Array | None) -> None:
    places = np.arange(len(output))
    panel.axhline(0, color=FAINT, lw=1)
    if target is not None:
        panel.plot(places, target, "o", ms=13, mfc="none", mec=CHOSEN, mew=2, label="target")
        panel.vlines(places, np.minimum(output, target), np.maximum(output, target), color=SECOND, lw=2)
    panel.plot(places, output, "o", ms=6, color=INK, label="output")
    panel.set_xticks(places)
    panel.margins(0.25)
    caption(panel, "Output", "component")
    if target is not None:
        headroom(panel)
        legend(panel, "upper center", columns=2)
