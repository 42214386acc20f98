"""Change one key and keep the query: the output changes, because every key is part of the softmax sum."""

from __future__ import annotations

import dataclasses

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, attend, largest_difference
from attnlab.explore.exploration import QueryExploration, vector
from attnlab.explore.matrices import check_index, check_pair, check_width
from attnlab.explore.query import STRAY
from attnlab.explore.reasons import listed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replacement(QueryExploration):
    """The result with the new key, and the key it replaced."""

    index: int
    old_key: Array
    new_key: Array

    def summary(self) -> list[tuple[str, str]]:
        new = f"{vector(self.new_key)}, length {np.linalg.norm(self.new_key):.4g}"
        return [(f"old k{self.index}", vector(self.old_key)), (f"new k{self.index}", new), *super().summary()]


def replace_key(
    keys: Array, values: Array, query: Array, index: int = 2, chosen: tuple[int, ...] = (0, 1, 2), unit: bool = False
) -> Replacement:
    """Replace key `index` so that the unchanged query averages the chosen values, or selects the one chosen.

    Only the score of the new key matters: k' = k + (s − q·k) q/‖q‖² has the score s and is the nearest such
    key to the old one. With `unit` the key has length 1, so |s| ≤ ‖q‖, and its part across the query keeps
    the old direction. The score s is the best one for the error, found by a search on the line.
    """
    check_pair(keys, values)
    check_width(query, keys, "the query")
    for row in (index, *chosen):
        check_index(row, len(keys), "value")
    chosen = tuple(sorted(set(chosen)))
    length = float(np.linalg.norm(query))
    if length == 0.0:
        raise UserError("the query is zero: it scores every key 0, so replacing a key changes no weight.")
    target = values[list(chosen)].mean(axis=0)
    score = best_score(keys @ query, values, target, index, chosen, length if unit else None)
    new_key = with_score(keys[index], query, score, unit)
    changed = keys.copy()
    changed[index] = new_key
    error = largest_difference(attend(query, changed, values), target)
    verb = "selects" if len(chosen) == 1 else "averages"
    return Replacement(
        title=f"Replace k{index}: the same query {verb} {listed(chosen, 'v')}",
        why=_why(changed @ query, index, chosen, length, unit, error),
        keys=changed,
        values=values,
        queries=query[None],
        targets=target[None],
        wanted=(np.isin(np.arange(len(keys)), chosen) / len(chosen))[None],
        reachable=error < 1e-6,
        index=index,
        old_key=keys[index],
        new_key=new_key,
    )


def best_score(
    scores: Array, values: Array, target: Array, index: int, chosen: tuple[int, ...], limit: float | None
) -> float:
    """The score for key `index` that brings the output closest to the target, at most ±limit if given."""
    from scipy.optimize import minimize_scalar

    others = np.delete(scores, index)
    far = float(np.log(len(scores) / STRAY))
    low, high = float(others.min()) - far, float(others.max()) + far
    if chosen == (index,):  # the higher the better: as high as allowed
        return high if limit is None else limit
    if limit is not None:
        low, high = max(low, -limit), min(high, limit)

    def error(score: float) -> float:
        tried = scores.copy()
        tried[index] = score
        powers = np.exp(tried - tried.max())
        return largest_difference(powers @ values / powers.sum(), target)

    equal = [float(scores[i]) for i in chosen if i != index and low <= scores[i] <= high]
    starts = [*equal, float(np.mean(equal))] if equal else [low, high]
    solution = minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    # equal scores are optimal among equals, and a search only approaches them
    return min([*starts, float(solution.x)], key=error)


def with_score(key: Array, query: Array, score: float, unit: bool) -> Array:
    """The key nearest to `key` with q·k' = score, of length 1 with `unit`."""
    length = float(np.linalg.norm(query))
    along = query / length
    if not unit:
        return np.asarray(key + (score - key @ query) / length * along)
    cosine = float(np.clip(score / length, -1.0, 1.0))
    across = key - (key @ along) * along
    if np.linalg.norm(across) < 1e-12:  # the old key is parallel to the query: use any perpendicular direction
        across = np.eye(len(key))[int(np.abs(along).argmin())]
        across = across - (across @ along) * along
    size = float(np.linalg.norm(across))
    if size == 0.0 and abs(cosine) < 1.0:
        raise UserError(
            "in one dimension a key of length 1 has only two possible scores, and neither is the one needed."
        )
    return np.asarray(cosine * along + np.sqrt(1.0 - cosine**2) * across / (size or 1.0))


def _why(scores: Array, index: int, chosen: tuple[int, ...], length: float, unit: bool, error: float) -> str:
    others = [i for i in range(len(scores)) if i != index]
    if chosen == (index,):
        lead = float(scores[index] - scores[others].max())
        reason = f"The new key scores {scores[index]:.4g}, {lead:.3g} above the best of the others"
        if unit:
            return (
                f"{reason}: a key of length 1 scores at most ‖q‖ = {length:.4g}, when it points along the "
                f"query. The error is {error:.2g}, and only a longer query can lower it."
            )
        return f"{reason}; a longer key leads by more."
    rest = [i for i in chosen if i != index]
    spread = float(np.ptp(scores[rest])) if rest else 0.0
    return (
        f"The new key scores {scores[index]:.6g}; the scores of {listed(rest)} differ by {spread:.2g} among "
        f"themselves. Equal scores share the weight equally; any difference remains in the error of {error:.2g}."
    )
