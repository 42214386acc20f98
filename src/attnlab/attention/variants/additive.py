"""A small network computes how well a query and a key match.

    S_tj = aᵀ tanh(q_t + k_j),   Y = softmax(S) V

Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, the first attention. O(T²) time and memory, with the head
width D as a factor of the memory: the tanh is computed for all pairs.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnlab.attention.attention import Attention
from attnlab.attention.parts.projections import LinearProjections
from attnlab.attention.parts.weighting import Weighted, softmax
from attnlab.attention.registry import INSIDE, MixerShape, variant


class Additive(nn.Module):
    """aᵀ tanh(q + k), with one a per head."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        direction = torch.randn(shape.heads, shape.head_width) / math.sqrt(shape.head_width)
        self.direction = nn.Parameter(direction)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        pairs = (queries[:, :, :, None] + keys[:, :, None]).tanh()  # (B, H, T, S, D)
        return torch.einsum("bhtsd,hd->bhts", pairs, self.direction)


@variant(
    "additive",
    equation="softmax(aᵀ tanh(Q+K)) V",
    paper="Bahdanau, Cho and Bengio 2015, arXiv:1409.0473",
    time=2,
    memory=2,
    positions=INSIDE,
)
def additive(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape), Weighted(Additive(shape), softmax, shape.dropout))
