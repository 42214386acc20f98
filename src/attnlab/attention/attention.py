"""Multi-head attention assembled from parts, and its standard form, softmax of scaled dot products.

    Y_i = softmax(Q_i K_iᵀ / √D) V_i,   Y = [Y_1; …; Y_H] A

Vaswani et al. 2017, "Attention is all you need", arXiv:1706.03762. O(T²) time; the fused kernel
never stores the T × T weights, so its memory is O(T).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.attention.parts.positions import relative_positions
from attnlab.attention.parts.projections import LinearProjections, merge_heads, qk_norm
from attnlab.attention.parts.weighting import Dot, VisibleKeys, Weighted, positions_of, softmax
from attnlab.attention.registry import INSIDE, MixerShape, variant


class Attention(nn.Module):
    """Project, apply positions, compare queries with keys, mix values, project back.

    `projections`  x (B, T, C) to queries (B, H, T, D), keys and values (B, G, T, D)
    `core`         queries, keys, values, the visible keys and a bias on the scores to outputs (B, H, T, D)
    """

    def __init__(self, shape: MixerShape, projections: nn.Module, core: nn.Module) -> None:
        super().__init__()
        self.causal = shape.causal
        self.projections = projections
        self.norm = qk_norm(shape)
        self.relative = relative_positions(shape)
        self.core = core
        self.output = nn.Linear(shape.width, shape.width, bias=shape.bias)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        queries, keys, values = self._project(x)
        at = positions_of(x) if cache is None else cache.positions(x)
        queries, keys = self.relative.rotate(queries, at), self.relative.rotate(keys, at)
        if cache is None:
            visible = VisibleKeys(at, at, self.causal, padding)
        else:
            visible, (keys, values) = cache.extend(x, padding, at, keys=keys, values=values)
        bias = self.relative.bias(visible.queries_at, visible.keys_at)
        return self.output(merge_heads(self.core(queries, keys, values, visible, bias)))

    def packed(self, x: Tensor, groups: Sequence[tuple[int, int]]) -> Tensor:
        """The same for sequences stored one after the other without padding, x (N, C).

        `groups` lists how many sequences of which length: (rows, length). The projections treat all tokens
        alike; only the comparison of queries with keys needs to separate the sequences.
        """
        sizes = [rows * length for rows, length in groups]
        parts = zip(*(part.split(sizes, dim=2) for part in self._project(x[None])), strict=True)
        mixed = []
        for group, (queries, keys, values) in zip(groups, parts, strict=True):
            queries, keys, values = (_in_rows(part, group) for part in (queries, keys, values))
            at = torch.arange(group[1], device=x.device)
            queries, keys = self.relative.rotate(queries, at), self.relative.rotate(keys, at)
            visible = VisibleKeys(at, at, self.causal)
            y = self.core(queries, keys, values, visible, self.relative.bias(at, at))  # (rows, H, length, D)
            mixed.append(merge_heads(y).flatten(0, 1))
        return self.output(torch.cat(mixed))

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = self.projections(x)
        queries, keys = self.norm(queries, keys)
        return queries, keys, values


def _in_rows(part: Tensor, group: tuple[int, int]) -> Tensor:
    """(1, H, rows·length, D) to (rows, H, length, D)."""
    return part[0].unflatten(1, group).transpose(0, 1)


class Fused(nn.Module):
    """Softmax of scaled dot products by torch's fused kernel."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.explicit = Weighted(Dot(), softmax, dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, visible: VisibleKeys, bias: Tensor | None
    ) -> Tensor:
        if self.dropout and self.training and queries.device.type == "cpu":
            # The CPU kernel has no dropout, and torch's fallback is slower than the explicit weights.
            return self.explicit(queries, keys, values, visible, bias)
        triangular = visible.triangular and bias is None  # the kernel has a shortcut for this case
        mask = None if triangular else visible.mask()
        if bias is not None:
            bias = bias.to(queries.dtype)
            mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
        return F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=mask,
            is_causal=triangular,
            dropout_p=self.dropout if self.training else 0.0,
            enable_gqa=keys.shape[1] != queries.shape[1],
        )


@variant(
    "vanilla",
    equation="softmax(QKᵀ/√D) V",
    paper="Vaswani et al. 2017, arXiv:1706.03762",
    time=2,
    memory=1,
    positions=INSIDE,
)
def vanilla(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape), Fused(shape.dropout))


@variant(
    "pieces",
    equation="softmax(QKᵀ/√D) V, step by step",
    paper="Vaswani et al. 2017, arXiv:1706.03762",
    time=2,
    memory=2,
    positions=INSIDE,
)
def pieces(shape: MixerShape) -> Attention:
    return Attention(shape, LinearProjections(shape), Weighted(Dot(), softmax, shape.dropout))
