"""Projections that are more than a matrix, in otherwise standard softmax attention.

    nonlinear-q, -k, -v     one of Q, K, V is gelu(xW + b)
    nonlinear-qkv           all three are
    mlp-qkv                 each is a small network, gelu(xW + b) U + c, with half the width inside

A composition of linear maps is linear, so plain QKᵀ is a bilinear form in the tokens; a nonlinearity in between
removes that restriction. O(T²) time.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.attention import Attention, Fused
from attnlab.attention.parts.projections import LinearProjections, split_heads
from attnlab.attention.registry import INSIDE, MixerShape, variant


class NonlinearProjections(LinearProjections):
    """Linear projections with gelu on those in `names`, letters of "qkv"."""

    def __init__(self, shape: MixerShape, names: str) -> None:
        super().__init__(shape)
        self.names = names

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        projected = zip("qkv", super().forward(x), strict=True)
        queries, keys, values = (F.gelu(y) if name in self.names else y for name, y in projected)
        return queries, keys, values


class MLPProjections(nn.Module):
    """One small network for queries, one for keys, one for values."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.heads = shape.heads
        inside = max(1, shape.width // 2)
        self.queries, self.keys, self.values = (
            nn.Sequential(
                nn.Linear(shape.width, inside, bias=shape.bias),
                nn.GELU(),
                nn.Linear(inside, shape.width, bias=shape.bias),
            )
            for _ in "qkv"
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = (split_heads(part(x), self.heads) for part in (self.queries, self.keys, self.values))
        return queries, keys, values


PAPER = "no paper: an ablation"


def _register(names: str) -> None:

    @variant(
        f"nonlinear-{names}",
        equation=f"softmax(QKᵀ/√D) V, gelu on {', '.join(names.upper())}",
        paper=PAPER,
        time=2,
        memory=1,
        positions=INSIDE,
    )
    def build(shape: MixerShape) -> Attention:
        return Attention(shape, NonlinearProjections(shape, names), Fused(shape.dropout))


for _names in ("q", "k", "v", "qkv"):
    _register(_names)


@variant(
    "mlp-qkv", equation="softmax(QKᵀ/√D) V, each of Q, K, V an MLP", paper=PAPER, time=2, memory=1, positions=INSIDE
)
def mlp_qkv(shape: MixerShape) -> Attention:
    return Attention(shape, MLPProjections(shape), Fused(shape.dropout))
