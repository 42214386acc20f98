"""The search for the closest query when the exact weights are out of reach.

Softmax over fixed keys is an exponential family whose statistics are the keys. The best query for target
weights t in Kullback-Leibler divergence is its maximum-likelihood fit, a convex problem:

    min_q KL(t ‖ softmax(Kq)),   gradient Kᵀ(softmax(Kq) − t),

so at the optimum the keys, averaged by the weights, have the same mean as under t. The error of the
output is not convex in q: it is lowered by a local search from there and from the best of many random
queries, so the result is the smallest error found, without a proof that it is the smallest.

Subtracting one vector from all keys changes no weight, so keys are centred and scaled before any search.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from attnlab.explore.attend import Array, attend, largest_difference, softmax

# Random queries tried, and how many of the best are improved further.
TRIES, IMPROVED = 3000, 6


def likeliest_query(keys: Array, target: Array, norm: float | None = None) -> Array:
    """argmin_q KL(t ‖ softmax(Kq)), with ‖q‖ ≤ norm if given.

    Without a norm the optimum is finite only if the mean Kᵀt is inside the hull of the keys (not on its
    border); callers restrict the keys to the smallest face that contains it.
    """
    from scipy.optimize import minimize

    size = key_scale(keys)
    keys = (keys - keys.mean(axis=0)) / size  # the solver's tolerances are for numbers near 1
    norm = None if norm is None else norm * size
    mean = target @ keys

    def divergence(query: Array) -> tuple[float, Array]:
        scores = keys @ query
        top = scores.max()
        weights = softmax(scores)
        return float(top + np.log(np.exp(scores - top).sum()) - mean @ query), weights @ keys - mean

    solution = minimize(
        divergence,
        np.zeros(keys.shape[1]),
        jac=True,
        method="BFGS" if norm is None else "SLSQP",
        constraints=[] if norm is None else [norm_constraint(norm, keys.shape[1])],
        options={"maxiter": 500} | ({"gtol": 1e-10} if norm is None else {"ftol": 1e-14}),
    )
    return shorten(solution.x, norm) / size


def least_error_query(keys: Array, values: Array, target: Array, starts: Iterable[Array], norm: float | None) -> Array:
    """The query that minimises the largest difference between output and target, the best from all starts.

    Each start is improved by minimising a bound e with |output − target| ≤ e in every component, which
    keeps the problem smooth: variables (q, e), constraints e ± (output − target) ≥ 0 and ‖q‖ ≤ norm.
    """
    size = key_scale(keys)
    scaled, limit = (keys - keys.mean(axis=0)) / size, None if norm is None else norm * size
    candidates = [shorten(start * size, limit) for start in starts]
    candidates += best_random_queries(scaled, values, target, limit)
    candidates += [shorten(_lower_error(scaled, values, target, start, limit), limit) for start in candidates]
    return min(candidates, key=lambda query: largest_difference(attend(query, scaled, values), target)) / size


def best_random_queries(keys: Array, values: Array, target: Array, norm: float | None) -> list[Array]:
    """The best few of many random queries of various lengths, from a fixed seed."""
    draw = np.random.default_rng(0)
    directions = draw.standard_normal((TRIES, keys.shape[1]))
    longest = 100.0 if norm is None else norm
    lengths = longest * np.geomspace(1e-4 if norm is None else 0.05, 1.0, TRIES)
    queries = directions * (lengths / np.linalg.norm(directions, axis=1))[:, None]
    errors = np.abs(attend(queries, keys, values) - target).max(axis=1)
    return list(queries[np.argsort(errors)[:IMPROVED]])


def key_scale(keys: Array) -> float:
    """The largest distance of a key from their mean, in any component; 1 if all are equal."""
    return float(np.abs(keys - keys.mean(axis=0)).max()) or 1.0


def _lower_error(keys: Array, values: Array, target: Array, start: Array, norm: float | None) -> Array:
    from scipy.optimize import minimize

    width = keys.shape[1]

    def slack(point: Array) -> Array:
        difference = attend(point[:width], keys, values) - target
        return np.r_[point[width] - difference, point[width] + difference]

    def slope(point: Array) -> Array:
        weights = softmax(keys @ point[:width])
        centred = values - weights @ values
        # ∂c/∂q = Σ α_i (v_i − c) k_iᵀ, the covariance of values and keys under the weights
        jacobian = (centred * weights[:, None]).T @ keys
        ones = np.ones((len(jacobian), 1))
        return np.vstack([np.hstack([-jacobian, ones]), np.hstack([jacobian, ones])])

    error = largest_difference(attend(start, keys, values), target)
    solution = minimize(
        lambda point: (point[width], np.r_[np.zeros(width), 1.0]),
        np.r_[start, error],
        jac=True,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": slack, "jac": slope}]
        + ([] if norm is None else [norm_constraint(norm, width)]),
        options={"maxiter": 300, "ftol": 1e-15},
    )
    query = np.asarray(solution.x[:width])
    return query if np.isfinite(query).all() else start


def norm_constraint(norm: float, width: int) -> dict[str, object]:
    """‖q‖² ≤ norm² on the first `width` variables, as a constraint for the solver."""
    return {
        "type": "ineq",
        "fun": lambda point: norm**2 - point[:width] @ point[:width],
        "jac": lambda point: np.r_[-2 * point[:width], np.zeros(len(point) - width)],
    }


def shorten(query: Array, norm: float | None) -> Array:
    """The query, shortened to `norm` if it is longer."""
    length = float(np.linalg.norm(query))
    return query if norm is None or length <= norm else query * (norm / length)
