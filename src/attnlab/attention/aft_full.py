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
from attnlab.attention.states import NOTHING

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
        w = (self.queries[:T] @ self.keys[:T].T).to(keys.dtype)
        w = w - w.amax(-1, keepdim=True).detach()  # a factor of exp(w) that only t depends on cancels
        if not self.causal:
            sums, weights = by_product(w, keys, values, keys.detach().amax(-2, keepdim=True))
            return sums / weights
        top = keys.detach().cummax(-2).values  # as does one of exp(K) that every j ≤ t has in sight
        # Split, not sliced: the gradient of a slice is as large as the whole, T² for each of T/BLOCK rows.
        rows = enumerate(w.split(BLOCK))
        return torch.cat([self._block(n * BLOCK, part, keys, values, top) for n, part in rows], 2)

    def _block(self, a: int, w: Tensor, keys: Tensor, values: Tensor, top: Tensor) -> Tensor:
        """Averages for positions a … b-1, whose rows of w are given.

        All before a by a product, those from a on pair by pair.
        """
        b = a + w.shape[0]
        future = torch.ones(b - a, b - a, dtype=torch.bool, device=w.device).triu(1)
        pairs = keys[:, :, None, a:b] - top[:, :, a:b, None]  # (B, G, t, j, K)
        pairs = (pairs + w[:, a:b, None]).masked_fill(future[..., None], NOTHING).exp()
        sums, weights = (pairs * values[:, :, None, a:b]).sum(3), pairs.sum(3)
        if a > 0:
            before = top[:, :, a - 1 : a]
            fade = (before - top[:, :, a:b]).exp()
            far_sums, far_weights = by_product(w[:, :a], keys[:, :, :a], values[:, :, :a], before)
            sums, weights = sums + fade * far_sums, weights + fade * far_weights
        return sums / weights


def by_product(w: Tensor, keys: Tensor, values: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_j exp(w_tj + K_j - top) V_j and the same without V, for w (T, S) and keys (B, G, S, K) all in sight.

    exp(K + w) = exp(w) exp(K) makes the sum over j a matrix product.
    """
    weights, masses = w.exp(), (keys - top).exp()
    return weights @ (masses * values), weights @ masses


@variant("aft-full", equation="σ(Q) ⊙ Σ exp(K_j+w_tj)V_j / Σ exp(K_j+w_tj)", paper=PAPER, time=2, memory=2)
def aft_full(shape: MixerShape) -> AFT:
    return AFT(shape, FullPooling(shape.context, shape.causal))
