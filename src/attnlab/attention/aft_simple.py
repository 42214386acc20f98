"""AFT-simple: no position weights at all, w = 0.

    Y_t = σ(Q_t) ⊙ Σ_{j ≤ t} exp(K_j) ⊙ V_j / Σ_{j ≤ t} exp(K_j)

Zhai et al. 2021, arXiv:2105.14103. O(T) time and memory; decoding keeps one average.
"""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.attention.aft import AFT, PAPER
from attnlab.attention.cache import Cache
from attnlab.attention.registry import variant
from attnlab.attention.shape import MixerShape
from attnlab.attention.states import pool, running


class SimplePooling(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, keys: Tensor, values: Tensor, at: Tensor, cache: Cache | None) -> Tensor:
        if self.causal:
            return running(keys, values, cache, "average")
        return pool(keys, values)[1].expand_as(values)


@variant("aft-simple", equation="σ(Q) ⊙ Σ exp(K_j)V_j / Σ exp(K_j)", paper=PAPER, time=1, memory=1)
def aft_simple(shape: MixerShape) -> AFT:
    return AFT(shape, SimplePooling(shape.causal))
