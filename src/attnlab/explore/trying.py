"""Attend with a query of your own: its scores, weights and output, and the distance to a target.

The output is a weighted average of the values, so it lies in their convex hull. A target outside the hull is out of
reach of every query; how far outside, a linear programme decides.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, attend, largest_difference, softmax
from attnlab.explore.exploration import Exploration, vector
from attnlab.explore.matrices import check_pair, check_width, takes_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriedQuery(Exploration):
    """One query against keys and values."""

    keys: Array  # (n, d)
    values: Array  # (n, e)
    query: Array  # (d,)
    target: Array | None  # (e,)
    least_error: float | None
    """The smallest error to the target that any weights have, whatever the query; None without a target."""

    derived = ("scores", "weights", "output", "error", "distance")

    @property
    def scores(self) -> Array:
        return np.asarray(self.keys @ self.query)

    @property
    def weights(self) -> Array:
        return softmax(self.scores)

    @property
    def output(self) -> Array:
        return attend(self.query, self.keys, self.values)

    @property
    def error(self) -> float | None:
        """The largest absolute difference between any component of output and target."""
        return None if self.target is None else largest_difference(self.output, self.target)

    @property
    def distance(self) -> float | None:
        """The Euclidean distance between output and target."""
        return None if self.target is None else float(np.linalg.norm(self.output - self.target))

    def summary(self) -> list[tuple[str, str]]:
        query = f"{vector(self.query)}, length {np.linalg.norm(self.query):.4g}"
        pairs = [("query", query), ("output", vector(self.output))]
        if self.target is not None:
            pairs += [
                ("target", vector(self.target)),
                ("distance to the target", f"{self.distance:.4g}"),
                ("error (largest difference)", f"{self.error:.4g}"),
            ]
        return pairs

    def table(self) -> tuple[list[str], list[list[str]]]:
        rows = zip(self.keys, self.scores, self.weights, self.values, strict=True)
        return ["i", "key", "score", "weight", "value"], [
            [str(i), vector(key), f"{score:.4g}", f"{weight:.6f}", vector(value)]
            for i, (key, score, weight, value) in enumerate(rows)
        ]

    def figure(self) -> Figure:
        from attnlab.explore.figures.attention import own_query

        return own_query(self)


@takes_numbers
def try_query(query: Array, keys: Array, values: Array, target: Array | None = None) -> TriedQuery:
    """Attend with this query; with a target, measure how far the output is from it."""
    check_pair(keys, values)
    check_width(query, keys, "the query")
    if target is not None and len(target) != values.shape[1]:
        raise UserError(
            f"the target has {len(target)} numbers, but the values have {values.shape[1]}: make them equal."
        )
    result = TriedQuery(
        title="Attend with your query",
        why="",
        keys=keys,
        values=values,
        query=query,
        target=target,
        least_error=None if target is None else least_error(values, target),
    )
    return dataclasses.replace(result, why=f"{_why_weights(result)} {_why_distance(result)}".strip())


def least_error(values: Array, target: Array) -> float:
    """min over weights α of the largest |Σ α_i v_i − target|: minimise e with −e ≤ Vᵀα − target ≤ e, Σα = 1, α ≥ 0."""
    from scipy.optimize import linprog

    count, width = values.shape
    size = float(np.abs(values - target).max()) or 1.0  # the solver's tolerances are for numbers near 1
    offsets = ((values - target) / size).T  # (e, n): Vᵀα − target = offsets α, because Σα = 1
    ones = np.ones((width, 1))
    solution = linprog(
        c=np.r_[np.zeros(count), 1.0],
        A_ub=np.vstack([np.hstack([offsets, -ones]), np.hstack([-offsets, -ones])]),
        b_ub=np.zeros(2 * width),
        A_eq=np.r_[np.ones(count), 0.0][None],
        b_eq=[1.0],
        bounds=(0.0, None),
    )
    error = float(solution.fun)
    return error * size if error > 1e-7 else 0.0


def _why_weights(result: TriedQuery) -> str:
    """The first and the second key by score, and what their difference does."""
    if len(result.keys) == 1:
        return "There is one key, and it has all the weight for every query."
    if not result.query.any():
        return "The query is zero: it scores every key 0, and the output is the mean of all values."
    first, second = np.argsort(-result.scores, kind="stable")[:2]
    largest, lead = result.scores[first], float(result.scores[first] - result.scores[second])
    if lead < 1e-9:
        return f"k{first} and k{second} share the largest score, {largest:.4g}, and have the same weight."
    if result.weights[first] == 1.0:
        return f"k{first} scores {largest:.4g}, {lead:.3g} above k{second}, and has all the weight in double precision."
    times = f"exp({lead:.3g}) = {np.exp(lead):.3g} times its weight"
    return f"k{first} scores {largest:.4g}, {lead:.3g} above k{second}, and has {times}."


def _why_distance(result: TriedQuery) -> str:
    if result.target is None or result.least_error is None:
        return ""
    if result.error is not None and result.error < 1e-12:
        return "The output is the target."
    if result.least_error > 0:
        return (
            f"The target is outside the hull of the values: no weights, and so no query, come closer than an error of "
            f"{result.least_error:.3g}."
        )
    return (
        "The target is a weighted average of the values, so some weights reach it; whether a query gives such weights "
        "depends on the keys."
    )
