"""Additive attention: the sequence is summarised in one query and one key, which are combined with every token.

    q̄ = Σ_i softmax(w·q_i/√D) q_i,   p_i = q̄ ⊙ k_i,   k̄ = Σ_i softmax(u·p_i/√D) p_i
    y_i = A (k̄ ⊙ v_i) + q_i

Wu et al. 2021, "Fastformer: Additive attention can be all you need", arXiv:2108.09084.

In the causal form the sums at t run over i ≤ t, and p_i uses the q̄ of position i: with the q̄ of t
all p_i would have to be computed again for every t. O(T) time and memory; decoding keeps two averages.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.attention.parts.projections import LinearProjections, merge_heads
from attnlab.attention.parts.states import hide, pool, running
from attnlab.attention.parts.weighting import Dropout
from attnlab.attention.registry import MixerShape, variant


class Fastformer(nn.Module):
    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.causal = shape.causal
        self.projections = LinearProjections(shape)
        self.query_score = nn.Parameter(torch.randn(shape.heads, shape.head_width))
        self.key_score = nn.Parameter(torch.randn(shape.heads, shape.head_width))
        self.dropout = Dropout(shape.dropout)
        self.output = nn.Linear(shape.width, shape.width, bias=shape.bias)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        queries, keys, values = self.projections(x)
        query = self._summary("query", queries, self.query_score, padding, cache)
        key = self._summary("key", query * keys, self.key_score, padding, cache)
        if cache is not None:
            cache.advance(x, padding)
        return self.output(self.dropout(merge_heads(key * values))) + merge_heads(queries)

    def _summary(
        self, name: str, vectors: Tensor, score: Tensor, padding: Tensor | None, cache: Cache | None
    ) -> Tensor:
        """The average of vectors (B, H, T, D) by their scores: of all, (B, H, 1, D), or of all up to each."""
        wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
        logits = (wide * score[:, None]).sum(-1, keepdim=True) / math.sqrt(wide.shape[-1])
        logits = hide(logits, padding)
        if not self.causal:
            return pool(logits, wide)[1].to(vectors.dtype)
        return running(logits, wide, cache, name).to(vectors.dtype)


@variant(
    "fastformer",
    equation="A(k̄ ⊙ V) + Q, k̄ = Σ softmax(u·p_i) p_i, p_i = q̄ ⊙ k_i",
    paper="Wu et al. 2021, arXiv:2108.09084",
    time=1,
    memory=1,
)
def fastformer(shape: MixerShape) -> Fastformer:
    return Fastformer(shape)
