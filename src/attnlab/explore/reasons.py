"""Explanations in words: why a query works, or why no query can."""

from __future__ import annotations

import numpy as np

from attnlab.explore.attend import Array
from attnlab.explore.convex_hull import combination


def listed(indices: tuple[int, ...] | list[int], letter: str = "k") -> str:
    """k0, k1 and k3."""
    listed = [f"{letter}{i}" for i in indices]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def mixture(weights: Array) -> str:
    """0.5·k1 + 0.5·k3, without the terms that are zero."""
    if weights.max() > 1 - 1e-6:
        return f"k{int(weights.argmax())}"
    return " + ".join(f"{weight:.3g}·k{i}" for i, weight in enumerate(weights) if weight > 1e-6)


def obstruction(keys: Array, chosen: tuple[int, ...]) -> str:
    """Why no query scores the chosen keys equally and all others lower."""
    weights = combination(keys, chosen)
    same = mixture(weights)
    if len(chosen) == 1 and weights.max() > 1 - 1e-6:
        return f"{listed(chosen)} = {same}, so every query scores both the same."
    if len(chosen) == 1:
        return f"{listed(chosen)} = {same}: its score is the average of theirs, so one of them scores as high."
    return (
        f"the mean of {listed(chosen)} is also {same}: a query that scores the chosen keys equally scores "
        "one of the others at least as high."
    )


def why_reached(chosen: tuple[int, ...], lead: float, stray: float) -> str:
    """`lead`: how far the chosen keys score above the others; `stray`: the weight the others keep."""
    what = "is a corner" if len(chosen) == 1 else "are a face"
    scored = "it" if len(chosen) == 1 else "them equally and"
    return (
        f"{listed(chosen)} {what} of the hull of the keys: this query scores {scored} {lead:.1f} above every "
        f"other key, which leaves the others {stray:.0e} of the weight; a longer query leaves less, but never "
        "exactly zero."
    )


def why_short(chosen: tuple[int, ...], norm: float, lead: float, stray: float, error: float) -> str:
    """The length limit is too short; `stray` is the weight that the likeliest query leaves to the others."""
    return (
        f"With ‖q‖ ≤ {norm:g} the scores of {listed(chosen)} can lead by at most {lead:.3g}; the likeliest "
        f"query leaves {stray:.2g} of the weight to the others, and {error:.2g} is the smallest error "
        "found. A longer query does better without limit."
    )


def why_not(keys: Array, chosen: tuple[int, ...], closest: Array, error: float, norm: float | None) -> str:
    """The wanted weights are out of reach: `closest` are the nearest in the limit of long queries."""
    got = ", ".join(f"{weight:.3g}" for weight in np.where(closest < 1e-12, 0.0, closest))
    if error < 1e-9:
        ending = "With these values other weights give the same output, and this query uses them."
    else:
        among = "all queries" if norm is None else f"queries with ‖q‖ ≤ {norm:g}"
        ending = f"The smallest error found over {among} is {error:.2g}."
    return (
        f"No query can give these weights: {obstruction(keys, chosen)} The closest in Kullback-Leibler "
        f"divergence are ({got}). {ending}"
    )
