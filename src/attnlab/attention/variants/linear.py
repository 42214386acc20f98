"""Attention whose kernel is a product of features, so that keys and values are summed once.

    y_t = φ(q_t)ᵀ Σ_{j ≤ t} φ(k_j) v_jᵀ / φ(q_t)ᵀ Σ_{j ≤ t} φ(k_j)

with φ(x) = elu(x) + 1 for `linear`: Katharopoulos et al. 2020, "Transformers are RNNs", arXiv:2006.16236.
O(T) time and memory; decoding stores two sums, whatever the length.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.attention.parts.positions import relative_positions
from attnlab.attention.parts.projections import LinearProjections, merge_heads, qk_norm
from attnlab.attention.parts.weighting import Dropout, positions_of
from attnlab.attention.registry import MixerShape, variant

CHUNK = 64


class KernelAttention(nn.Module):
    """`features` maps queries and keys (B, H, T, D) to two sets of features (B, H, T, R), none negative."""

    def __init__(self, shape: MixerShape, features: nn.Module) -> None:
        super().__init__()
        self.causal = shape.causal
        self.projections = LinearProjections(shape)
        self.norm = qk_norm(shape)
        self.relative = relative_positions(shape)
        self.features = features
        self.dropout = Dropout(shape.dropout)
        self.output = nn.Linear(shape.width, shape.width, bias=shape.bias)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        queries, keys, values = self.projections(x)
        queries, keys = self.norm(queries, keys)
        at = positions_of(x) if cache is None else cache.positions(x)
        queries, keys = self.relative.rotate(queries, at), self.relative.rotate(keys, at)
        with torch.autocast(x.device.type, enabled=False):  # sums over T tokens need 32 bits
            y = self._mix(queries, keys, values, padding, cache)
        if cache is not None:
            cache.advance(x, padding)
        return self.output(merge_heads(self.dropout(y.to(x.dtype))))

    def _mix(
        self, queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None, cache: Cache | None
    ) -> Tensor:
        queries, keys = self.features(_wide(queries), _wide(keys))
        if padding is not None:
            keys = keys * padding[:, None, :, None]
        # A column of ones among the values: the same sums then contain the normaliser.
        values = F.pad(_wide(values), (0, 1), value=1.0)
        if not self.causal:
            y = queries @ (keys.transpose(-1, -2) @ values)
        else:
            start = None if cache is None else cache.state.get("sums")
            y, sums = causal_sums(queries, keys, values, start)
            if cache is not None:
                cache.state["sums"] = sums
        mixed, weight = y[..., :-1], y[..., -1:]
        matched = weight > 1e-20  # a query that matches no key gives 0, and no gradient of 0/0
        return torch.where(matched, mixed / torch.where(matched, weight, 1.0), 0.0)


def causal_sums(queries: Tensor, keys: Tensor, values: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Σ_{j ≤ t} (q_t·k_j) v_j for features (B, H, T, R) and values (B, H, T, D), and the last Σ k_j v_jᵀ.

    In chunks: within a chunk by its small lower triangle, before it by the sums (R, D) of all earlier ones.
    That stores T/CHUNK such sums, where a running sum per token would store T.
    """
    length = queries.shape[-2]
    size = min(CHUNK, length)
    q, k, v = (
        F.pad(part, (0, 0, 0, -length % size)).unflatten(-2, (-1, size)) for part in (queries, keys, values)
    )  # (B, H, chunks, size, ·)
    sums = k.transpose(-1, -2) @ v  # (B, H, chunks, R, D)
    if start is not None:
        sums = torch.cat((start[:, :, None], sums), 2)
    else:
        sums = F.pad(sums, (0, 0, 0, 0, 1, 0))
    sums = sums.cumsum(2)
    y = (q @ k.transpose(-1, -2)).tril() @ v + q @ sums[:, :, :-1]
    return y.flatten(-3, -2)[..., :length, :], sums[:, :, -1]


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Elu(nn.Module):
    """φ(x) = elu(x) + 1: positive, and linear where x is."""

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return F.elu(queries) + 1, F.elu(keys) + 1


@variant(
    "linear",
    equation="φ(Q)(φ(K)ᵀV) / φ(Q)Σφ(K), φ = elu+1",
    paper="Katharopoulos et al. 2020, arXiv:2006.16236",
    time=1,
    memory=1,
    positions=frozenset({"rotary"}),
)
def linear(shape: MixerShape) -> KernelAttention:
    return KernelAttention(shape, Elu())
