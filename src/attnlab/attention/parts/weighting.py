"""How much a query takes from each key, step by step: which keys it sees, scores, weights, dropout, values.

    S = similarity(Q, K),   W = normalise(S, visible keys),   Y = dropout(W) V

A fused kernel gives the same for scaled dot products and softmax; here each step can be replaced, at the
price of storing the T × T weights: O(T²) time and memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DROPOUT_STEPS = 2**16


@dataclass(frozen=True)
class VisibleKeys:
    """Which keys a query may see, from the positions of both; the mask is built only when it is needed."""

    queries_at: Tensor  # (T,) or (B, T)
    keys_at: Tensor  # (S,)
    causal: bool
    real: Tensor | None = None  # (B, S), True for keys that are tokens and not padding

    @property
    def triangular(self) -> bool:
        """The lower triangle is the whole mask: causal, and queries and keys are the same tokens.

        Padding needs no mask then: it comes after the real tokens, which do not look ahead.
        """
        return self.causal and self.queries_at.shape == self.keys_at.shape

    def past(self) -> Tensor | None:
        """(T, S) or (B, 1, T, S), True where the key is not later than the query; None: not causal."""
        if not self.causal:
            return None
        past = self.keys_at <= self.queries_at[..., :, None]
        return past if past.dim() == 2 else past[:, None]

    def tokens(self) -> Tensor | None:
        """(B, 1, 1, S), True where the key is a real token; None: all are."""
        return None if self.real is None else self.real[:, None, None, :]

    def mask(self) -> Tensor | None:
        """True where a query may look, broadcasting to (B, H, T, S); None: everywhere."""
        past, tokens = self.past(), self.tokens()
        if past is None or tokens is None:
            return tokens if past is None else past
        return past & tokens


def positions_of(x: Tensor) -> Tensor:
    """0 … T-1, (T,), for x (B, T, C)."""
    return torch.arange(x.shape[1], device=x.device)


class Dot(nn.Module):
    """q·k / √D."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, H, T, D) and (B, H, S, D) to (B, H, T, S)."""
        return queries / math.sqrt(queries.shape[-1]) @ keys.transpose(-1, -2)  # D numbers to divide, not S


def masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores with -∞ where a query may not look, so that exp gives 0.

    The mask is added: one pass over the T × T scores, and none in the backward pass, where filling takes four.
    """
    if mask is None:
        return scores
    return scores + scores.new_zeros(mask.shape).masked_fill_(~mask, float("-inf"))


def softmax(scores: Tensor, visible: VisibleKeys) -> Tensor:
    """exp(s_tj) / Σ_i exp(s_ti), over the visible keys."""
    return masked(scores, visible.mask()).softmax(-1)


Normaliser = Callable[[Tensor, VisibleKeys], Tensor]
"""Scores (B, H, T, S) to weights of the same shape."""


def drop(x: Tensor, p: float) -> Tensor:
    """Each number is 0 with probability p, and divided by 1 - p otherwise.

    Half of the cost of torch's dropout on a CPU is one call of the generator per number. Here a call gives
    64 bits, enough for four; the probability is rounded to a multiple of 2⁻¹⁶, and the scale follows it.
    """
    if p == 0 or x.device.type != "cpu":
        return F.dropout(x, p)
    dropped = round(p * DROPOUT_STEPS)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    kept = (draws >= dropped - DROPOUT_STEPS // 2).to(x.dtype)
    return x * kept.mul_(DROPOUT_STEPS / (DROPOUT_STEPS - dropped))


class Dropout(nn.Dropout):
    """In training, `drop`; in evaluation, the identity."""

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.p) if self.training else x


class Weighted(nn.Module):
    """A core for `Attention` that computes its weights explicitly."""

    def __init__(self, similarity: nn.Module, normalise: Normaliser = softmax, dropout: float = 0.0) -> None:
        super().__init__()
        self.similarity = similarity
        self.normalise = normalise
        self.dropout = Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, visible: VisibleKeys, bias: Tensor | None
    ) -> Tensor:
        if keys.shape[1] != queries.shape[1]:  # groups of query heads share keys and values
            group = queries.shape[1] // keys.shape[1]
            keys, values = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
        return self.dropout(self.weights(queries, keys, visible, bias)) @ values

    def weights(self, queries: Tensor, keys: Tensor, visible: VisibleKeys, bias: Tensor | None = None) -> Tensor:
        """How much each query (B, H, T, D) takes from each key (B, H, S, D): (B, H, T, S)."""
        scores = self.similarity(queries, keys)
        # In 32 bits at least: exp of a half-precision score loses the differences that matter.
        wide = torch.promote_types(scores.dtype, torch.float32)
        scores = scores.to(wide) if bias is None else scores.to(wide) + bias
        return self.normalise(scores, visible).to(queries.dtype)
