"""Curves: the weight by the length of the query, and the distance to the target by β."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.explore.figures.canvas import CHOSEN, GOOD, INK, MUTED, OTHER, SECOND, caption, heatmap, legend, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attnlab.explore.constructing import Construction
    from attnlab.explore.copying import Copying


def sharpness(result: Copying) -> Figure:
    figure, (weight, rest) = sheet(2, result.title)
    lengths = result.lengths
    for values, colour, name, style in (
        (result.best, CHOSEN, "widest direction", "-"),
        (result.own, OTHER, f"along k{result.index} itself", "--"),
    ):
        weight.plot(lengths, values, color=colour, lw=2, ls=style, label=name)
        rest.plot(lengths, np.maximum(1 - values, 1e-17), color=colour, lw=2, ls=style, label=name)
    weight.axhline(1 / len(result.keys), color=MUTED, lw=1, ls=":")
    weight.set_ylim(0, 1.05)
    caption(weight, f"Weight on k{result.index}", "length of the query", "weight")
    legend(weight, "lower right")
    if result.best_margin > 0:
        bound = (len(result.keys) - 1) * np.exp(-result.best_margin * lengths)
        rest.plot(lengths, bound, color=INK, lw=1, ls=":", label="(n − 1)·exp(−margin · length)")
    rest.set_yscale("log")
    rest.set_ylim(1e-14, 2 * len(result.keys))
    caption(rest, "Weight of the other keys", "length of the query", "weight (log scale)")
    legend(rest, "lower left" if result.own_margin > 0 else "best")
    return figure


def construction(result: Construction) -> Figure:
    figure, (growth, parts) = sheet(2, result.title, height=4.0, ratios=[1.0, 1.15])
    growth.plot(result.betas, result.plain_to_ub, "s--", color=OTHER, lw=2, label="plain: ‖c₂ − u_b‖")
    growth.plot(result.betas, result.plain_to_ua, "v--", color=SECOND, lw=2, label="plain: ‖c₂ − u_a‖")
    growth.plot(result.betas, result.c2_to_ub, "o-", color=CHOSEN, lw=2, label="K, Q, V: ‖c₂ − u_b‖")
    growth.plot(result.betas, result.c1_to_ub_uc, "^-", color=GOOD, lw=2, label="K, Q, V: ‖c₁ − (u_b − u_c)‖")
    growth.set_yscale("log")
    caption(growth, "Distance to the target", "β, the length of each u", "distance (log scale)")
    legend(growth, "lower left")
    heatmap(parts, np.stack(list(result.parts.values())), 1.0)
    parts.set_xticks(range(4), [f"u_{name}" for name in "abcd"])
    parts.set_yticks(range(len(result.parts)), list(result.parts))
    caption(parts, f"Coefficients of the outputs at β = {result.betas[-1]:g}")
    return figure
