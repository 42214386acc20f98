"""Argmax instead of softmax: exactly the value of the best key, and no gradient for queries and keys.

    α = onehot(argmax_i q·k_i)

The weights are constant almost everywhere in q and K, so their derivatives are zero: queries and keys never
move, while the selected value still does. Softmax with scores β q·k is the same as β grows, and its gradient
fades the same way.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from attnlab.explore.attend import Array, attend, softmax
from attnlab.explore.exploration import Exploration, vector
from attnlab.explore.matrices import check_pair, check_width
from attnlab.explore.reasons import listed

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

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
    hard_gradients: dict[str, float]
    """Length of the gradient of the output's squared length with respect to q, K and V, under argmax."""
    soft_gradients: dict[str, float]
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


def argmax(keys: Array, values: Array, query: Array) -> HardAttention:
    """Hard attention for one query next to softmax, with the gradients of both."""
    check_pair(keys, values)
    check_width(query, keys, "the query")
    scores = keys @ query
    winner = int(scores.argmax())
    ties = tuple(int(i) for i in np.flatnonzero(scores == scores[winner]) if i != winner)
    hard = gradients(keys, values, query, hard=True)
    soft = gradients(keys, values, query, hard=False)
    fading = np.array([gradients(keys, values, query, hard=False, factor=beta)["q"] for beta in SHARPNESS])
    why = (
        f"k{winner} has the largest score, {scores[winner]:.4g}, so the output is v{winner} itself. A small "
        f"change of q or K changes no weight, so their gradient is exactly {hard['q']:g} under argmax; "
        f"under softmax it is {soft['q']:.3g} for q and {soft['K']:.3g} for K. Under argmax only the value "
        "gets a gradient."
    )
    if ties:
        why += f" {listed(ties)} {'has' if len(ties) == 1 else 'have'} the same score; the first key wins."
    return HardAttention(
        title="Argmax attention",
        why=why,
        keys=keys,
        values=values,
        query=query,
        winner=winner,
        ties=ties,
        hard_gradients=hard,
        soft_gradients=soft,
        fading=fading,
    )


def gradients(keys: Array, values: Array, query: Array, hard: bool, factor: float = 1.0) -> dict[str, float]:
    """Lengths of ∂‖c‖²/∂q, ∂‖c‖²/∂K and ∂‖c‖²/∂V, by automatic differentiation.

    A part that the gradient never reaches has length 0.
    """
    import torch

    q, k, v = (torch.tensor(part, dtype=torch.float64, requires_grad=True) for part in (query, keys, values))
    scores = factor * (k @ q)
    output = _weights(scores, hard) @ v
    output.square().sum().backward()
    return {
        name: 0.0 if part.grad is None else float(part.grad.norm()) for name, part in zip("qKV", (q, k, v), strict=True)
    }


def _weights(scores: torch.Tensor, hard: bool) -> torch.Tensor:
    import torch

    if hard:
        return torch.nn.functional.one_hot(scores.argmax(), len(scores)).to(scores.dtype)
    return scores.softmax(dim=0)


def _lengths(gradients: dict[str, float]) -> str:
    return ", ".join(f"{name} {length:.4g}" for name, length in gradients.items())
