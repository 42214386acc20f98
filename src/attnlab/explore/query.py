"""The best query for "these values and nothing else", the search behind select, identity and average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.explore.attend import Array, attend, largest_difference, softmax
from attnlab.explore.closest import least_error, likeliest
from attnlab.explore.faces import Face, combination, smallest_face

# The weight a query of free length leaves to the other keys: what double precision rounds away.
STRAY = 2.0**-53


@dataclass(frozen=True)
class Found:
    """A query, and what the mathematics says about it."""

    query: Array
    reachable: bool
    """Whether longer queries come as close as one likes to equal weights on the chosen, none elsewhere."""
    margin: float
    """Distance of the chosen keys' face to the hull of the rest: the gap in scores for each unit of ‖q‖."""
    why: str


def best_query(keys: Array, values: Array, chosen: tuple[int, ...], norm: float | None = None) -> Found:
    """The query whose output is closest to the mean of the chosen values, no longer than `norm` if given.

    - The chosen keys are a face of the hull: the widest direction, long enough that the rest keeps STRAY.
    - They are not, or the length is limited: a search from the widest direction, from the likeliest query
      and from zero (`closest`), since the error then has no closed-form optimum.
    """
    face = smallest_face(keys, chosen)
    reachable = face.members == tuple(sorted(chosen))
    if len(chosen) == len(keys):
        return Found(
            np.zeros(keys.shape[1]),
            True,
            np.inf,
            "A zero query scores every key 0: every weight is 1/n exactly.",
        )
    far = limit_query(keys, chosen, face)
    if reachable and (norm is None or np.linalg.norm(far) <= norm):
        return Found(far, True, face.margin, _why_reached(keys, chosen, face, far))
    target = values[list(chosen)].mean(axis=0)
    wanted = np.isin(np.arange(len(keys)), chosen) / len(chosen)
    starts = [far, np.zeros(keys.shape[1])]
    if norm is not None:
        starts += [face.normal * norm, likeliest(keys, wanted, norm)]
    query = least_error(keys, values, target, starts, norm)
    error = largest_difference(attend(query, keys, values), target)
    if reachable and norm is not None:
        why = _why_short(keys, chosen, face, norm, error)
    else:
        why = _why_not(keys, chosen, face, error)
    return Found(query, reachable, face.margin if reachable else 0.0, why)


def limit_query(keys: Array, chosen: tuple[int, ...], face: Face) -> Array:
    """Far along the face's normal the other keys fade; on the face the likeliest weights remain."""
    members = list(face.members)
    others = len(keys) - len(members)
    on_face = np.zeros(keys.shape[1])
    if len(members) > len(chosen):
        wanted = np.isin(members, chosen) / len(chosen)
        on_face = likeliest(keys[members], wanted)
    if others == 0:
        return on_face
    # a query that prefers members with a slope of its own must still be beaten by the normal
    slope = float((keys @ on_face).max() - (keys[members] @ on_face).min())
    return on_face + face.normal * (np.log(others / STRAY) + slope) / face.margin


def names(indices: tuple[int, ...] | list[int], letter: str = "k") -> str:
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
    same = mixture(combination(keys, chosen))
    if len(chosen) == 1:
        return f"{names(chosen)} = {same}: its score is the average of theirs, so one of them scores as high."
    return (
        f"the mean of {names(chosen)} is also {same}: a query that scores the chosen keys equally "
        f"scores one of the others at least as high."
    )


def _why_reached(keys: Array, chosen: tuple[int, ...], face: Face, query: Array) -> str:
    stray = float(np.delete(softmax(keys @ query), list(chosen)).sum())
    what = "is a corner" if len(chosen) == 1 else "are a face"
    scored = "it" if len(chosen) == 1 else "them equally and"
    gap = face.margin * float(np.linalg.norm(query))
    return (
        f"{names(chosen)} {what} of the hull of the keys: this query scores {scored} {gap:.1f} above every "
        "other key, "
        f"which leaves the others {stray:.0e} of the weight; a longer query leaves less, none leaves exactly "
        "nothing."
    )


def _why_short(keys: Array, chosen: tuple[int, ...], face: Face, norm: float, error: float) -> str:
    wanted = np.isin(np.arange(len(keys)), chosen) / len(chosen)
    most = float(softmax(keys @ likeliest(keys, wanted, norm))[list(chosen)].sum())
    return (
        f"With ‖q‖ ≤ {norm:g} the scores of {names(chosen)} can lead by at most {face.margin * norm:.3g}; "
        f"the likeliest query leaves {1 - most:.2g} of the weight to the others, and {error:.2g} is the "
        "smallest error found. "
        f"A longer query does better without limit."
    )


def _why_not(keys: Array, chosen: tuple[int, ...], face: Face, error: float) -> str:
    nearest = softmax(keys @ limit_query(keys, chosen, face))
    got = ", ".join(f"{weight:.3g}" for weight in nearest)
    if error < 1e-9:
        ending = "These values allow the same output with other weights, which is what this query does."
    else:
        ending = f"The smallest error found over all queries is {error:.2g}."
    return (
        f"No query can give these weights: {obstruction(keys, chosen)} The closest, in the sense of Kullback "
        "and "
        f"Leibler, are ({got}). {ending}"
    )
