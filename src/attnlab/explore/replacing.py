"""Change one key and keep the query: the output changes, because every key is part of the softmax sum.

Only the score s of the new key k_j matters, and only through its weight t: the other keys keep their scores, and so
the proportions r of their weights. With c₋ⱼ = Σ r_i v_i, the output without the key,

    t = exp(s) / (exp(s) + Σ_{i≠j} exp(s_i)),    output = (1 − t) c₋ⱼ + t v_j.

Every output lies on the segment from c₋ⱼ to v_j; a target off that segment is out of reach.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, largest_difference, softmax
from attnlab.explore.exploration import QueryExploration, vector
from attnlab.explore.matrices import check_index, check_pair, check_width, takes_numbers
from attnlab.explore.query import STRAY
from attnlab.explore.reasons import listed

# Errors and differences of weights below this count as none.
CLOSE = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replacement(QueryExploration):
    """The result with the new key, and the key it replaced."""

    index: int
    old_key: Array
    new_key: Array

    def summary(self) -> list[tuple[str, str]]:
        new = f"{vector(self.new_key)}, length {np.linalg.norm(self.new_key):.4g}"
        return [(f"old k{self.index}", vector(self.old_key)), (f"new k{self.index}", new), *super().summary()]


@dataclasses.dataclass(frozen=True)
class Segment:
    """The outputs that a new key can give: (1 − t) start + t end, for its weight t between 0 and 1."""

    start: Array  # (e,), the output without the key
    end: Array  # (e,), its value
    proportions: Array  # (n − 1,), the weights of the other keys among themselves
    level: float
    """log Σ exp of the other scores: a key with this score has half of the weight."""

    @classmethod
    def of(cls, scores: Array, values: Array, index: int) -> Segment:
        others = np.delete(scores, index)
        proportions = softmax(others)
        level = float(others.max() - np.log(proportions.max()))
        return cls(proportions @ np.delete(values, index, axis=0), values[index], proportions, level)

    def weight(self, score: float) -> float:
        return float(softmax(np.array([score, self.level]))[0])

    def score(self, weight: float) -> float:
        return self.level + float(np.log(weight) - np.log1p(-weight))

    def error(self, weight: float, target: Array) -> float:
        return largest_difference((1 - weight) * self.start + weight * self.end, target)

    def best_score(self, target: Array, share: float, limits: tuple[float, float], ends_only: bool = False) -> float:
        """The score within the limits whose output is closest to the target.

        The error is convex in the weight, so a search finds the optimum; but it only approaches one that lies at a
        limit or at `share`, the weight that the target gives to the key.
        """
        from scipy.optimize import minimize_scalar

        low, high = limits
        bounds = self.weight(low), self.weight(high)
        scores = [high, low]
        if bounds[0] < bounds[1] and not ends_only:
            searched = minimize_scalar(
                self.error, args=(target,), bounds=bounds, method="bounded", options={"xatol": 1e-12}
            )
            scores += [self.score(weight) for weight in (share, float(searched.x)) if 0 < weight < 1]
        inside = [score for score in scores if low <= score <= high]
        return min(inside, key=lambda score: self.error(self.weight(score), target))


@takes_numbers
def replace_key(
    keys: Array, values: Array, query: Array, index: int = 2, chosen: tuple[int, ...] = (0, 1, 2), unit: bool = False
) -> Replacement:
    """Replace key `index` so that the unchanged query averages the chosen values, or selects the one chosen.

    k' = k + (s − q·k) q/‖q‖² has the score s and is the nearest such key to the old one. With `unit` the key has
    length 1, so |s| ≤ ‖q‖, and its part across the query keeps the old direction.
    """
    check_pair(keys, values)
    check_width(query, keys, "the query")
    check_index(index, len(keys), "key")
    for row in chosen:
        check_index(row, len(keys), "value")
    chosen = tuple(sorted(set(chosen)))
    length = float(np.linalg.norm(query))
    if length == 0.0:
        raise UserError("the query is zero: it scores every key 0, so replacing a key changes no weight.")
    if len(keys) == 1:
        raise UserError("there is only one key: it has all the weight whatever it is, so give at least two.")
    target = values[list(chosen)].mean(axis=0)
    segment = Segment.of(keys @ query, values, index)
    share = 1 / len(chosen) if index in chosen else 0.0
    limits = (-length, length) if unit else _wide_limits(np.delete(keys @ query, index))
    # in one dimension 1 and −1 are the only keys of length 1
    score = segment.best_score(target, share, limits, ends_only=unit and len(query) == 1)
    changed = keys.copy()
    changed[index] = with_score(keys[index], query, score, unit)
    verb = "selects" if len(chosen) == 1 else "averages"
    result = Replacement(
        title=f"Replace k{index}: the same query {verb} {listed(chosen, 'v')}",
        why="",
        keys=changed,
        values=values,
        queries=query[None],
        targets=target[None],
        wanted=(np.isin(np.arange(len(keys)), chosen) / len(chosen))[None],
        reachable=False,
        index=index,
        old_key=keys[index],
        new_key=changed[index],
    )
    if result.error < CLOSE:
        return dataclasses.replace(result, reachable=True, why=_why_reached(result, chosen))
    # What the best key of any length would leave: if nothing, the length is the reason.
    wide = _wide_limits(np.delete(keys @ query, index))
    free = segment.error(segment.weight(segment.best_score(target, share, wide)), target)
    why = _why_short(result, segment, chosen, limits) if free < CLOSE else _why_off(result, segment, chosen)
    return dataclasses.replace(result, why=why)


def _wide_limits(others: Array) -> tuple[float, float]:
    """Scores so far from the others that the new key has all of the weight or none, in double precision."""
    far = float(np.log((len(others) + 1) / STRAY))
    return float(others.min()) - far, float(others.max()) + far


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
    size = float(np.linalg.norm(across)) or 1.0
    return np.asarray(cosine * along + np.sqrt(1.0 - cosine**2) * across / size)


def _why_reached(result: Replacement, chosen: tuple[int, ...]) -> str:
    scores, index = result.scores[0], result.index
    if np.abs(result.weights - result.wanted).max() > CLOSE:
        return "With these values other weights give the same output, and the new key uses them."
    others = np.delete(scores, index)
    if chosen == (index,):
        return (
            f"The new key scores {scores[index]:.4g}, {scores[index] - others.max():.3g} above the best of the others, "
            "and has all the weight."
        )
    rest = [i for i in chosen if i != index]
    if index in chosen:
        return (
            f"The new key scores {scores[index]:.6g}, equal to {listed(rest)}: equal scores share the weight equally."
        )
    return (
        f"The query already gives {listed(rest, 'v')} without v{index}: the new key scores {scores[index]:.4g}, "
        f"{scores[rest].min() - scores[index]:.3g} below, and has no weight."
    )


def _why_short(result: Replacement, segment: Segment, chosen: tuple[int, ...], limits: tuple[float, float]) -> str:
    """The target is on the segment, but out of reach of a key of length 1."""
    low, high = (segment.weight(limit) for limit in limits)
    between = f"{low:.3g} or {high:.3g}" if result.keys.shape[1] == 1 else f"between {low:.3g} and {high:.3g}"
    # k along q scores ‖q‖: if that is the largest score, a longer query raises it most
    longer = " or a longer query" if chosen == (result.index,) and result.scores[0].argmax() == result.index else ""
    return (
        f"A key of length 1 scores at most ‖q‖ = {limits[1]:.4g}, when it points along the query, and at least "
        f"−‖q‖: v{result.index} gets {between} of the weight, which leaves the error {result.error:.2g}. A key of "
        f"another length{longer} lowers it."
    )


def _why_off(result: Replacement, segment: Segment, chosen: tuple[int, ...]) -> str:
    """The target is not on the segment: no replacement of this key reaches it."""
    index = result.index
    others = [i for i in range(len(result.keys)) if i != index]
    rest = [i for i in chosen if i != index]
    equal = f"all on {listed(rest)}" if len(rest) == 1 else f"equal on {listed(rest)} and 0 elsewhere"
    proportions = vector(np.where(segment.proportions < 1e-12, 0.0, segment.proportions))
    return (
        f"A new k{index} decides only the weight of v{index}: {listed(others)} keep their scores, and so the "
        f"proportions {proportions} of the rest, which would have to be {equal}. Every output lies between "
        f"{vector(segment.start)} and v{index}, and the target does not: the closest has the error "
        f"{result.error:.2g}, with {result.weights[0][index]:.3g} of the weight on v{index}. Only another query "
        "changes the proportions."
    )
