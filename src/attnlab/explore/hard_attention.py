"""Argmax instead of softmax: exactly the value of the best key, and no gradient for queries and keys.

    α = onehot(argmax_i q·k_i)

The weights are constant almost everywhere in q and K, so their derivatives are zero: queries and keys never
move, while the selected value still does. Softmax with scores β q·k is the same as β grows, and its gradient
fades the same way.

Where several keys tie for the largest score the weights jump, and have no derivative: an arbitrarily small change
decides which of them wins. On the tie itself the first one wins, as in numpy. Automatic differentiation keeps that
winner fixed and reports 0. Softmax shares the weight equally, however large β is, and its gradient need not fade.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnlab.explore.attend import Array, attend, softmax
from attnlab.explore.exploration import Exploration, vector
from attnlab.explore.matrices import check_pair, check_width, takes_numbers
from attnlab.explore.reasons import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Gradients = Mapping[str, float | None]

# Scores that differ by less than this part of ‖q‖‖k‖ differ by rounding only: a tie.
ROUNDING = 1e-14
# Factors on the scores for the figure of a softmax that approaches argmax.
SHARPNESS = np.geomspace(0.1, 30.0, 60)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HardAttention(Exploration):
    keys: Array
    values: Array
    query: Array
    winner: int
    ties: tuple[int, ...]
    """Other keys with the same best score; the first one wins."""
    hard_gradients: Gradients
    """Length of the gradient of the output's squared length with respect to q, K and V, under argmax.

    None where the weights jump: at a tie they have no derivative.
    """
    soft_gradients: Gradients
    """The same under softmax."""
    fading: Array
    """Length of the query's gradient for each factor in SHARPNESS."""

    derived = ("scores", "output", "soft_output", "soft_weights")

    @property
    def scores(self) -> Array:
        return np.asarray(self.keys @ self.query)

    @property
    def output(self) -> Array:
        return np.asarray(self.values[self.winner])

    @property
    def soft_weights(self) -> Array:
        return softmax(self.scores)

    @property
    def soft_output(self) -> Array:
        return attend(self.query, self.keys, self.values)

    def summary(self) -> list[tuple[str, str]]:
        return [
            ("argmax output", vector(self.output)),
            ("softmax output", vector(self.soft_output)),
            ("argmax gradients", _lengths(self.hard_gradients)),
            ("softmax gradients", _lengths(self.soft_gradients)),
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        head = ["i", "key", "score", "argmax weight", "softmax weight", "value"]
        rows = zip(self.keys, self.scores, self.soft_weights, self.values, strict=True)
        return head, [
            [str(i), vector(key), f"{score:.4g}", str(int(i == self.winner)), f"{weight:.6f}", vector(value)]
            for i, (key, score, weight, value) in enumerate(rows)
        ]

    def figure(self) -> Figure:
        from attnlab.explore.figures.attention import hard_and_soft

        return hard_and_soft(self)


@takes_numbers
def argmax(keys: Array, values: Array, query: Array) -> HardAttention:
    """Hard attention for one query next to softmax, with the gradients of both."""
    check_pair(keys, values)
    check_width(query, keys, "the query")
    scores = keys @ query
    winner, *ties = _winners(keys, query)
    found = gradients(keys, values, query, winner)
    hard = {name: None if _jumps(name, keys, query, winner, ties) else length for name, length in found.items()}
    soft = gradients(keys, values, query)
    return HardAttention(
        title="Argmax attention",
        why=_why_tied(values, scores, winner, ties, hard) if ties else _why_won(scores, winner, hard, soft),
        keys=keys,
        values=values,
        query=query,
        winner=winner,
        ties=tuple(ties),
        hard_gradients=hard,
        soft_gradients=soft,
        fading=np.array([gradients(keys, values, query, factor=beta)["q"] for beta in SHARPNESS]),
    )


def gradients(
    keys: Array, values: Array, query: Array, winner: int | None = None, factor: float = 1.0
) -> dict[str, float]:
    """Lengths of ∂‖c‖²/∂q, ∂‖c‖²/∂K and ∂‖c‖²/∂V, by automatic differentiation.

    The weights are softmax(factor · q·k), or 1 on the `winner` of an argmax. A part that the gradient never
    reaches has length 0.
    """
    import torch

    q, k, v = (torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in (query, keys, values))
    output = (factor * (k @ q)).softmax(dim=0) @ v if winner is None else v[winner]
    output.square().sum().backward()
    return {
        name: 0.0 if part.grad is None else float(part.grad.norm()) for name, part in zip("qKV", (q, k, v), strict=True)
    }


def _winners(keys: Array, query: Array) -> list[int]:
    """The keys with the largest score, in order."""
    scores = keys @ query
    rounding = ROUNDING * float(np.linalg.norm(query) * np.linalg.norm(keys, axis=1).max())
    return [int(i) for i in np.flatnonzero(scores >= scores.max() - rounding)]


def _jumps(name: str, keys: Array, query: Array, winner: int, ties: list[int]) -> bool:
    """Whether an arbitrarily small change of q, K or V can change the winner.

    Equal keys tie for every query, and a query of zero scores any keys alike. The weights do not depend on V.
    """
    separable = {"q": bool((keys[ties] != keys[winner]).any()), "K": bool(query.any()), "V": False}
    return bool(ties) and separable[name]


def _why_won(scores: Array, winner: int, hard: Gradients, soft: Gradients) -> str:
    return (
        f"k{winner} has the largest score, {scores[winner]:.4g}, so the output is v{winner} itself. A small "
        f"change of q or K changes no weight, so their gradient is exactly {hard['q']:g} under argmax; "
        f"under softmax it is {soft['q']:.3g} for q and {soft['K']:.3g} for K. Under argmax only v{winner} "
        "gets a gradient."
    )


def _why_tied(values: Array, scores: Array, winner: int, ties: list[int], hard: Gradients) -> str:
    tied = [winner, *ties]
    moved = " or ".join(name for name in "qK" if hard[name] is None)
    still = " and ".join(name for name in "qK" if hard[name] is not None)
    sentences = [
        f"{listed(tied)} tie for the largest score, {scores[winner]:.4g}: argmax takes the first, so the output is "
        f"v{winner} itself."
    ]
    if moved:
        sentences.append(
            f"An arbitrarily small change of {moved} makes another of them the only winner, and the weights jump: here "
            f"they have no derivative with respect to {moved}. Automatic differentiation keeps the winner fixed and "
            "would report 0."
        )
    if still:
        sentences.append(f"No small change of {still} separates them, so that gradient is exactly 0.")
    sentences.append(
        f"Softmax gives each of them the same weight, and the sharper it is, the closer its output is to their mean, "
        f"{vector(values[tied].mean(axis=0))}. Under argmax only v{winner} gets a gradient."
    )
    return " ".join(sentences)


def _lengths(gradients: Gradients) -> str:
    return ", ".join(
        f"{name} {'none (tie)' if length is None else f'{length:.4g}'}" for name, length in gradients.items()
    )
