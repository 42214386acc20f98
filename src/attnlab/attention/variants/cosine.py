"""Only the direction of queries and keys counts, with a learned sharpness per head.

    S_tj = τ · q_t·k_j / (|q_t| |k_j|),   Y = softmax(S) V

Liu et al. 2022, Swin Transformer V2, arXiv:2111.09883. O(T²) time and memory.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.attention import Attention
from attnlab.attention.parts.projections import LinearProjections
from attnlab.attention.parts.weighting import Weighted, softmax
from attnlab.attention.registry import INSIDE, MixerShape, variant


class Cosine(nn.Module):
    """τ cos(q, k). Without τ the scores stay within ±1 and no weight can be close to 1."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.log_sharpness = nn.Parameter(torch.full((heads, 1, 1), math.log(10.0)))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        # At most 100, as in the paper: a larger τ only makes training unstable.
        sharpness = self.log_sharpness.clamp(max=math.log(100.0)).exp()
        return sharpness * (F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-1, -2))


@variant(
    "cosine",
    equation="softmax(τ cos(Q, K)) V",
    paper="Liu et al. 2022, arXiv:2111.09883",
    time=2,
    memory=2,
    positions=INSIDE,
)
def cosine(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape), Weighted(Cosine(shape.heads), softmax, shape.dropout))
