"""The nearer a key is to the query, the more it counts: softmax over negative squared distances.

    S_tj = -|q_t - k_j|² / (2√D),   Y = softmax(S) V

As |q - k|² = |q|² - 2 q·k + |k|², and softmax cancels |q|², this is the scaled dot product minus
|k_j|² / (2√D): a long key has no advantage by its length alone. Kim, Papamakarios and Mnih 2021,
arXiv:2006.04710. O(T²) time and memory.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from attnlab.attention.attention import Attention
from attnlab.attention.parts.projections import LinearProjections
from attnlab.attention.parts.weighting import Weighted, softmax
from attnlab.attention.registry import INSIDE, MixerShape, variant


class NegativeDistance(nn.Module):
    """-|q - k|² / (2√D), by a matrix product and two norms."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        lengths = queries.square().sum(-1)[..., :, None] + keys.square().sum(-1)[..., None, :]
        return (queries @ keys.transpose(-1, -2) - lengths / 2) / math.sqrt(queries.shape[-1])


@variant(
    "distance",
    equation="softmax(-|Q-K|²/2√D) V",
    paper="Kim, Papamakarios and Mnih 2021, arXiv:2006.04710",
    time=2,
    memory=2,
    positions=INSIDE,
)
def distance(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape), Weighted(NegativeDistance(), softmax, shape.dropout))
