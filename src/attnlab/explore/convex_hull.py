"""Which keys can win together: the faces of the convex hull of the keys, by linear programming.

A query q scores key i with q·k_i, so the winners are the keys farthest along q: exactly the keys on
a face of the convex hull. Two facts follow, and every search for a query in `explore` uses them:

- the weights can approach "equal on S, zero elsewhere" exactly when S is the set of all keys
  on one face (a single key: when it is a corner, and no other key equals it);
- if not, the mean of S is also a convex combination that uses keys outside S. A query that scores S equally
  then scores one of those at least as high (Farkas' lemma), and the combination is the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.explore.attend import Array

# Margins below this share of the keys' spread count as zero: the solver's own tolerance is near 1e-7.
RESOLUTION = 1e-6


@dataclass(frozen=True)
class Face:
    """The smallest face that contains the mean of some chosen keys."""

    members: tuple[int, ...]
    """The keys on the face: the chosen ones, and those that cannot be beaten without beating a chosen one."""
    normal: Array
    """The unit direction that scores members equally and the rest as low as possible; 0 if there is no rest."""
    margin: float
    """How far below, for a query of length 1: the distance to the hull of the rest; infinite if there is no rest."""


def smallest_face(keys: Array, chosen: tuple[int, ...]) -> Face:
    """Find the face with one linear programme.

    With m the mean of the chosen keys, maximise Σ s_i over directions u with

        u·(m − k_i) ≥ s_i,   0 ≤ s_i ≤ 1,   |u|∞ ≤ 1 / RESOLUTION.

    A key off the face can be pushed to s_i = 1; a key on it is held at 0, because m is a positive
    combination of the members and u·m is the largest score.
    """
    from scipy.optimize import linprog

    count, width = keys.shape
    mean = keys[list(chosen)].mean(axis=0)
    offsets = keys - mean
    spread = float(np.abs(offsets).max())
    if spread == 0.0:
        return Face(tuple(range(count)), np.zeros(width), np.inf)
    solution = linprog(
        c=np.r_[np.zeros(width), -np.ones(count)],
        A_ub=np.hstack([offsets / spread, np.eye(count)]),
        b_ub=np.zeros(count),
        bounds=[(-1 / RESOLUTION, 1 / RESOLUTION)] * width + [(0.0, 1.0)] * count,
    )
    beaten = solution.x[width:] > 0.5
    members = tuple(i for i in range(count) if not beaten[i] or i in chosen)
    normal, margin = widest_direction(keys, members)
    return Face(members, normal, margin)


def widest_direction(keys: Array, members: tuple[int, ...]) -> tuple[Array, float]:
    """The unit vector u with equal scores on `members` and the largest margin over all other keys.

    It is the hard-margin problem  min ‖q‖  s.t.  q·(k_a − k_b) = 0 on the members and q·(k_a − k_i) ≥ 1
    off them, with u = q/‖q‖ and margin 1/‖q‖. The equalities leave a subspace; within it this is least
    distance programming, which Lawson and Hanson turn into non-negative least squares: with the rows
    g_i = k_a − k_i, minimise ‖Gᵀλ‖² + (1ᵀλ − 1)² over λ ≥ 0; then q = Gᵀλ / (1 − 1ᵀλ).
    """
    from scipy.optimize import nnls

    inside = keys[list(members)]
    rest = np.delete(keys, list(members), axis=0)
    if len(rest) == 0:
        return np.zeros(keys.shape[1]), np.inf
    centre = inside.mean(axis=0)
    spread = float(np.abs(rest - centre).max())
    free = null_space(inside - centre, spread)
    gaps = (centre - rest) @ free / spread
    multipliers, _ = nnls(np.vstack([gaps.T, np.ones(len(rest))]), np.r_[np.zeros(free.shape[1]), 1.0])
    towards = free @ (gaps.T @ multipliers)
    direction = towards / np.linalg.norm(towards)
    return direction, float(((centre - rest) @ direction).min())


def null_space(rows: Array, spread: float) -> Array:
    """An orthonormal basis, as columns, of the directions in which all `rows` are zero."""
    _, sizes, directions = np.linalg.svd(rows)
    rank = int((sizes > 1e-9 * max(spread, float(np.abs(rows).max()))).sum())
    return np.asarray(directions[rank:].T)


def combination(keys: Array, chosen: tuple[int, ...]) -> Array:
    """Convex weights with the same mean as the chosen keys, and as much weight on other keys as possible.

    minimise Σ_{i∈S} λ_i   s.t.   Kᵀλ = m,  Σλ = 1,  λ ≥ 0. If any λ outside S is positive, S is not a face.
    """
    from scipy.optimize import linprog

    count = len(keys)
    mean = keys[list(chosen)].mean(axis=0)
    spread = float(np.abs(keys - mean).max()) or 1.0
    inside = np.zeros(count)
    inside[list(chosen)] = 1.0
    solution = linprog(
        c=inside,
        A_eq=np.vstack([(keys - mean).T / spread, np.ones(count)]),
        b_eq=np.r_[np.zeros(keys.shape[1]), 1.0],
        bounds=(0.0, None),
    )
    return np.asarray(solution.x)
