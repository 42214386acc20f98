"""Pictures of samples: the outputs of one head and two, and a sum taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.explore.figures.canvas import CHOSEN, INK, MUTED, OTHER, caption, heatmap, legend, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.explore.extracting import Extraction
    from attnlab.explore.noisy_keys import Noise

MOST_POINTS = 1500  # more only hide each other


def noise(found: Noise) -> Figure:
    figure, (shares, plane) = sheet(2, found.title, height=4.2, ratios=[1.3, 1.0])
    bins = np.linspace(0, 1, 41).tolist()
    for outputs, colour, name in ((found.one, OTHER, "one head"), (found.two, CHOSEN, "two heads")):
        shares.hist(
            outputs[:, 0],
            bins=bins,
            color=colour,
            alpha=0.65,
            label=name,
            weights=np.full(len(outputs), 1 / len(outputs)),
        )
        shown = outputs[:MOST_POINTS]
        # a little jitter, or thousands of equal outputs look like one
        jitter = np.random.default_rng(0).normal(0, 0.012, (len(shown), 2))
        along, across = (shown[:, :2] + jitter).T
        plane.scatter(along, across, s=9, color=colour, alpha=0.35, label=name, linewidths=0)
    plane.plot(0.5, 0.5, "+", color=INK, ms=14, mew=2, label="½(v_a + v_b)")
    plane.set_aspect("equal")
    plane.set_xlim(-0.08, 1.08)
    plane.set_ylim(-0.08, 1.08)
    caption(plane, "Outputs, draw by draw", "share of v_a", "share of v_b")
    legend(plane, "upper right")
    ratio = f"variance ratio {found.ratio:.3g} (with k_a·q₁ > 0: {found.ratio_forward:.3g})"
    caption(shares, f"β = {found.beta:g}: {ratio}", "share of v_a in the output", "share of the draws")
    legend(shares, "upper left")
    return figure


def extraction(found: Extraction) -> Figure:
    figure, (matrix, parts) = sheet(2, f"{found.title} (error {found.error:.2g})", height=4.0, ratios=[0.8, 1.2])
    heatmap(matrix, found.matrix)
    matrix.set_aspect("equal")
    caption(matrix, ("M = 2 A Aᵀ" if found.of_mean else "M = A Aᵀ") if found.perpendicular else "M, onto A along B")
    places = np.arange(found.matrix.shape[0])
    mixed = "½(v_a + v_b)" if found.of_mean else "v_a + v_b"
    parts.bar(places, found.mixed[0], 0.7, color=MUTED, alpha=0.45, label=f"given: {mixed}")
    parts.plot(places, found.wanted[0], "o", ms=12, mfc="none", mec=CHOSEN, mew=2, label="wanted: v_a")
    parts.plot(places, found.recovered[0], "o", ms=5, color=INK, label="recovered by M")
    parts.axhline(0, color=MUTED, lw=1)
    if len(places) <= 20:
        matrix.set_xticks(places)
        matrix.set_yticks(places)
        parts.set_xticks(places)
    caption(parts, "One draw", "component")
    legend(parts)
    return figure
