"""Attention step by step, every step a part: scores, weights, values.

    S = similarity(Q, K),   W = normalise(S, who may look at whom),   Y = W V

A fused kernel gives the same for scaled dot products and softmax; here each step can be replaced, at the
price of holding the T × T weights: O(T²) time and memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlab.attention.parts.dropout import Dropout
from attnlab.attention.parts.masks import Sight

Normaliser = Callable[[Tensor, Sight], Tensor]
"""Scores (B, H, T, S) to weights of the same shape."""


class Dot(nn.Module):
    """q·k / √D."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(B, H, T, D) and (B, H, S, D) to (B, H, T, S)."""
        return queries / math.sqrt(queries.shape[-1]) @ keys.transpose(-1, -2)  # D numbers to divide, not S


def masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores with -∞ where a query may not look, so that exp makes it 0.

    It is added: that is one pass over the T × T scores, and none on the way back, where filling in takes four.
    """
    if mask is None:
        return scores
    return scores + scores.new_zeros(mask.shape).masked_fill_(~mask, float("-inf"))


def softmax(scores: Tensor, sight: Sight) -> Tensor:
    """exp(s_tj) / Σ_i exp(s_ti), over the keys in sight."""
    return masked(scores, sight.mask()).softmax(-1)


class Weighted(nn.Module):
    """A core for `Attention` that computes its weights in the open."""

    def __init__(self, similarity: nn.Module, normalise: Normaliser = softmax, dropout: float = 0.0) -> None:
        super().__init__()
        self.similarity = similarity
        self.normalise = normalise
        self.dropout = Dropout(dropout)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, sight: Sight, bias: Tensor | None) -> Tensor:
        if keys.shape[1] != queries.shape[1]:  # groups of query heads share keys and values
            group = queries.shape[1] // keys.shape[1]
            keys, values = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
        return self.dropout(self.weights(queries, keys, sight, bias)) @ values

    def weights(self, queries: Tensor, keys: Tensor, sight: Sight, bias: Tensor | None = None) -> Tensor:
        """How much each query (B, H, T, D) takes from each key (B, H, S, D): (B, H, T, S)."""
        scores = self.similarity(queries, keys)
        # In 32 bits at least: exp of a half-precision score loses the differences that matter.
        wide = torch.promote_types(scores.dtype, torch.float32)
        scores = scores.to(wide) if bias is None else scores.to(wide) + bias
        return self.normalise(scores, sight).to(queries.dtype)
