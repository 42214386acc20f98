"""The best query for "these values and nothing else", used by select, identity and average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.explore.attend import Array, attend, largest_difference, softmax
from attnlab.explore.convex_hull import Face, smallest_face
from attnlab.explore.query_search import least_error_query, likeliest_query
from attnlab.explore.reasons import why_not, why_reached, why_short

# The weight that a query without a length limit leaves to the other keys: the rounding of double precision.
STRAY = 2.0**-53


@dataclass(frozen=True)
class QueryResult:
    """A query, and whether it can reach its target."""

    query: Array
    reachable: bool
    """Whether longer queries come arbitrarily close to equal weights on the chosen keys, zero elsewhere."""
    margin: float
    """Distance of the chosen keys' face to the hull of the rest: the gap in scores per unit of ‖q‖."""
    why: str


def best_query(keys: Array, values: Array, chosen: tuple[int, ...], norm: float | None = None) -> QueryResult:
    """The query whose output is closest to the mean of the chosen values, no longer than `norm` if given.

    `chosen` is in ascending order.

    - If the chosen keys are a face of the hull: the widest direction, long enough that the rest keeps STRAY.
    - Otherwise, or if the length is limited: a search from the widest direction, from the likeliest query
      and from zero (`query_search`), because the error has no closed-form optimum.
    """
    if len(chosen) == len(keys):
        why = "A zero query scores every key 0: every weight is 1/n exactly."
        return QueryResult(np.zeros(keys.shape[1]), True, np.inf, why)
    face = smallest_face(keys, chosen)
    reachable = face.members == chosen
    far = limit_query(keys, chosen, face)
    length = float(np.linalg.norm(far))
    if reachable and (norm is None or length <= norm):
        return QueryResult(far, True, face.margin, why_reached(chosen, face.margin * length, stray(keys, chosen, far)))
    target = values[list(chosen)].mean(axis=0)
    target_weights = np.isin(np.arange(len(keys)), chosen) / len(chosen)
    fitted = far if norm is None else likeliest_query(keys, target_weights, norm)
    query = least_error_query(keys, values, target, [far, fitted, np.zeros(keys.shape[1])], norm)
    error = largest_difference(attend(query, keys, values), target)
    if reachable and norm is not None:
        why = why_short(chosen, norm, face.margin * norm, stray(keys, chosen, fitted), error)
    else:
        why = why_not(keys, chosen, softmax(keys @ far), error, norm)
    return QueryResult(query, reachable, face.margin if reachable else 0.0, why)


def stray(keys: Array, chosen: tuple[int, ...], query: Array) -> float:
    """The weight that a query gives to keys that were not chosen."""
    return float(np.delete(softmax(keys @ query), list(chosen)).sum())


def limit_query(keys: Array, chosen: tuple[int, ...], face: Face) -> Array:
    """A long query along the face's normal: the other keys lose their weight, the face keeps the likeliest weights."""
    members = list(face.members)
    others = len(keys) - len(members)
    on_face = np.zeros(keys.shape[1])
    if len(members) > len(chosen):
        target_weights = np.isin(members, chosen) / len(chosen)
        on_face = likeliest_query(keys[members], target_weights)
    if others == 0:
        return on_face
    # the part on the face changes scores too: the normal must outweigh it
    slope = float((keys @ on_face).max() - (keys[members] @ on_face).min())
    return on_face + face.normal * (np.log(others / STRAY) + slope) / face.margin
