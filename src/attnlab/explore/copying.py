"""How sharp copying is: the weight on one key against the length of the query.

Along any direction u the weight on key j is 1 / (1 + Σ_{i≠j} exp(−‖q‖ u·(k_j − k_i))). With the margin
γ = min_i u·(k_j − k_i) > 0 at most (n − 1) exp(−γ‖q‖) goes elsewhere: the length needed grows with the
logarithm of the accuracy and with 1/γ. The widest direction has the largest γ, the distance of k_j to the
hull of the other keys; the key's own direction, the usual choice, can be worse or even wrong.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, softmax
from attnlab.explore.convex_hull import smallest_face
from attnlab.explore.exploration import Exploration
from attnlab.explore.matrices import LARGEST, check_index, takes_numbers
from attnlab.explore.reasons import obstruction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.5, 0.9, 0.99, 0.999, 0.999999)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Copying(Exploration):
    keys: Array
    index: int
    lengths: Array
    own: Array
    """Weight on the key for q along the key itself, at each length."""
    best: Array
    """Weight on the key for q along the widest direction."""
    own_margin: float
    best_margin: float
    needed: dict[float, float | None]
    """The length along the widest direction that gives the key this much weight; None if no length does."""
    own_needed: dict[float, float | None]

    def summary(self) -> list[tuple[str, str]]:
        return [("margin, widest direction", f"{self.best_margin:.4g}"), ("margin, own key", f"{self.own_margin:.4g}")]

    def table(self) -> tuple[list[str], list[list[str]]]:
        return [f"weight on k{self.index}", "‖q‖, widest direction", "‖q‖, along the key itself"], [
            [f"{level:g}", _length(self.needed[level]), _length(self.own_needed[level])] for level in LEVELS
        ]

    def figure(self) -> Figure:
        from attnlab.explore.figures.curves import sharpness

        return sharpness(self)


@takes_numbers
def copy(keys: Array, index: int = 0, longest: float = 30.0, points: int = 121) -> Copying:
    """Weight on key `index` for queries of length 0 to `longest`, in its own and in the widest direction."""
    check_index(index, len(keys), "key")
    if not 0 < longest < LARGEST:
        raise UserError(f"the longest query must have a positive finite length, got {longest:g}.")
    length = float(np.linalg.norm(keys[index]))
    own_direction = keys[index] / length if length else np.zeros(keys.shape[1])
    face = smallest_face(keys, (index,))
    reachable = face.members == (index,)
    best_direction = face.normal if reachable else np.zeros(keys.shape[1])
    lengths = np.linspace(0.0, longest, points)
    own_margin, best_margin = (margin(keys, index, u) for u in (own_direction, best_direction))
    return Copying(
        title=f"Copy v{index}: weight by length of the query",
        why=_why(keys, index, own_margin, best_margin, reachable),
        keys=keys,
        index=index,
        lengths=lengths,
        own=weight_along(keys, index, own_direction, lengths),
        best=weight_along(keys, index, best_direction, lengths),
        own_margin=own_margin,
        best_margin=best_margin,
        needed={level: length_for(keys, index, best_direction, level) for level in LEVELS},
        own_needed={level: length_for(keys, index, own_direction, level) for level in LEVELS},
    )


def margin(keys: Array, index: int, direction: Array) -> float:
    """How far key `index` leads all others in score, for a query of length 1 along `direction`."""
    gaps = np.delete((keys[index] - keys) @ direction, index)
    return float(gaps.min()) if len(gaps) else np.inf


def weight_along(keys: Array, index: int, direction: Array, lengths: Array) -> Array:
    return softmax(np.outer(lengths, keys @ direction))[:, index]


def length_for(keys: Array, index: int, direction: Array, level: float) -> float | None:
    """The query length at which key `index` has `level` of the weight; None if it never leads.

    Where it leads, its weight only grows with the length, so there is one crossing.
    """
    from scipy.optimize import brentq

    lead = margin(keys, index, direction)
    if not lead > 0:
        return None
    if 1.0 / len(keys) >= level:
        return 0.0
    # at this length the weight is at least `level` even if all n − 1 other keys follow with the same lead
    enough = float(np.log((len(keys) - 1) * level / (1 - level)) / lead)

    def excess(length: float) -> float:
        return float(weight_along(keys, index, direction, np.array([length]))[0]) - level

    return float(brentq(excess, 0.0, enough * (1 + 1e-9), xtol=1e-12))


def _why(keys: Array, index: int, own_margin: float, best_margin: float, reachable: bool) -> str:
    if not reachable:
        return f"No query length copies v{index}: {obstruction(keys, (index,))}"
    if len(keys) == 1:
        return "There is only one key, and it has all the weight at any length."
    bound = (
        f"Along the widest direction k{index} leads by {best_margin:.3g} per unit of ‖q‖, so at most "
        f"{len(keys) - 1}·exp(−{best_margin:.3g}‖q‖) of the weight goes elsewhere."
    )
    if own_margin > 0:
        longer = f"the query must be {best_margin / own_margin:.3g} times as long"
        return f"{bound} Along the key itself it leads by {own_margin:.3g}: {longer}."
    return f"{bound} Along the key itself another key scores higher: q = S·k{index} copies a wrong value."


def _length(needed: float | None) -> str:
    return "never" if needed is None else f"{needed:.4g}"
