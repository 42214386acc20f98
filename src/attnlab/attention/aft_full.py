"""AFT-full: a weight for every pair of positions, of low rank: w_tj = u_t·v_j.

    Y_t = σ(Q_t) ⊙ Σ_j exp(K_j + w_tj) ⊙ V_j / Σ_j exp(K_j + w_tj)

Zhai et al. 2021, arXiv:2105.14103. O(T²) time, O(T²) memory for exp(w) (one matrix for all channels and
all sequences of a batch).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.attention.aft import AFT, PAPER, BiasedPooling
from attnlab.attention.registry import variant
from attnlab.attention.shape import MixerShape
from attnlab.attention.states import NOTHING, State, merge, pool

BLOCK = 16


class FullPooling(BiasedPooling):
    def __init__(self, context: int, causal: bool, rank: int = 64) -> None:
        super().__init__()
        self.longest, self.causal = context, causal
        self.queries = nn.Parameter(torch.randn(context, rank) * 0.1)
        self.keys = nn.Parameter(torch.randn(context, rank) * 0.1)

    def bias(self, queries_at: Tensor, keys_at: Tensor) -> Tensor:
        w = self.queries[queries_at] @ self.keys[keys_at].T  # (T, S) or (B, T, S)
        return w if w.dim() == 2 else w[:, None]

    def whole(self, keys: Tensor, values: Tensor) -> Tensor:
        T = keys.shape[2]
        w = self.queries[:T] @ self.keys[:T].T
        if not self.causal:
            return by_product(w, keys, values)[1]
        return torch.cat([self._block(w, keys, values, a, min(a + BLOCK, T)) for a in range(0, T, BLOCK)], 2)

    def _block(self, w: Tensor, keys: Tensor, values: Tensor, a: int, b: int) -> Tensor:
        """Averages for positions a … b-1: all before a by a product, those from a on pair by pair."""
        future = torch.ones(b - a, b - a, dtype=torch.bool, device=w.device).triu(1)
        pairs = keys[:, :, None, a:b] + w[a:b, a:b].masked_fill(future, NOTHING)[..., None]  # (B, G, t, j, K)
        logs, averages = pool(pairs, values[:, :, None, a:b])
        near = logs[..., 0, :], averages[..., 0, :]
        if a == 0:
            return near[1]
        return merge(by_product(w[a:b, :a], keys[:, :, :a], values[:, :, :a]), near)[1]


def by_product(w: Tensor, keys: Tensor, values: Tensor) -> State:
    """The states of keys (B, G, S, K) under exp(K_j + w_tj) for w (T, S), all of which every t may see.

    exp(K + w) = exp(w) exp(K) makes the sum over j a matrix product. Each factor is scaled by its own
    largest, which is in everybody's sight and cancels.
    """
    highest, top = keys.amax(-2, keepdim=True).detach(), w.amax(-1, keepdim=True).detach()
    weights, masses = (w - top).exp(), (keys - highest).exp()
    total = (weights @ masses).clamp_min(1e-30)
    return total.log() + highest + top, weights @ (masses * values) / total


@variant("aft-full", equation="σ(Q) ⊙ Σ exp(K_j+w_tj)V_j / Σ exp(K_j+w_tj)", paper=PAPER, time=2, memory=2)
def aft_full(shape: MixerShape) -> AFT:
    return AFT(shape, FullPooling(shape.context, shape.causal))
