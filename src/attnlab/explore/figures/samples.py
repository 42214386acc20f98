"""Figures of random draws: the outputs of one head and two, and the term recovered from a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.explore.figures.canvas import CHOSEN, INK, MUTED, OTHER, caption, heatmap, legend, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.explore.extracting import Extraction
    from attnlab.explore.noisy_keys import Noise

MAX_POINTS = 1500  # more would hide each other


def noise(result: Noise) -> Figure:
    figure, (shares, plane) = sheet(2, result.title, height=4.2, ratios=[1.3, 1.0])
    bins = np.linspace(0, 1, 41).tolist()
    for outputs, colour, name in ((result.one, OTHER, "one head"), (result.two, CHOSEN, "two heads")):
        shares.hist(
            outputs[:, 0],
            bins=bins,
            color=colour,
            alpha=0.65,
            label=name,
            weights=np.full(len(outputs), 1 / len(outputs)),
        )
        shown = outputs[:MAX_POINTS]
        # jitter, because thousands of equal outputs would look like one
        jitter = np.random.default_rng(0).normal(0, 0.012, (len(shown), 2))
        along, across = (shown[:, :2] + jitter).T
        plane.scatter(along, across, s=9, color=colour, alpha=0.35, label=name, linewidths=0)
    plane.plot(0.5, 0.5, "+", color=INK, ms=14, mew=2, label="½(v_a + v_b)")
    plane.set_aspect("equal")
    plane.set_xlim(-0.08, 1.08)
    plane.set_ylim(-0.08, 1.08)
    caption(plane, "Output of each draw", "share of v_a", "share of v_b")
    legend(plane, "upper right")
    ratios = f"variance ratio {result.exact.ratio} (with k_a·q₁ > 0: {result.exact_forward.ratio})"
    caption(shares, f"β = {result.beta:g}: exact {ratios}", "share of v_a in the output", "share of the draws")
    legend(shares, "upper left")
    return figure


def extraction(result: Extraction) -> Figure:
    figure, (matrix, parts) = sheet(2, f"{result.title} (error {result.error:.2g})", height=4.0, ratios=[0.8, 1.2])
    heatmap(matrix, result.matrix)
    matrix.set_aspect("equal")
    caption(matrix, result.formula)
    places = np.arange(result.matrix.shape[0])
    mixed = "½(v_a + v_b)" if result.of_mean else "v_a + v_b"
    parts.bar(places, result.mixed[0], 0.7, color=MUTED, alpha=0.45, label=f"input: {mixed}")
    parts.plot(places, result.wanted[0], "o", ms=12, mfc="none", mec=CHOSEN, mew=2, label="target: v_a")
    parts.plot(places, result.recovered[0], "o", ms=5, color=INK, label="recovered by M")
    parts.axhline(0, color=MUTED, lw=1)
    if len(places) <= 20:
        matrix.set_xticks(places)
        matrix.set_yticks(places)
        parts.set_xticks(places)
    caption(parts, "One draw", "component")
    legend(parts)
    return figure
