"""Attention Free Transformer: what all its forms share.

    Y_t = σ(Q_t) ⊙ Σ_j exp(K_j + w_tj) ⊙ V_j / Σ_j exp(K_j + w_tj)

No query meets a key. Keys say how much a token counts, for each channel; the learned w_tj says how much
position t cares for position j; the query only gates the result. The forms differ in w.

Zhai et al. 2021, "An attention free Transformer", arXiv:2105.14103.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from attnlab.attention.cache import Cache
from attnlab.attention.dropout import Dropout
from attnlab.attention.projections import merge_heads, split_heads
from attnlab.attention.shape import MixerShape
from attnlab.attention.sight import positions_of
from attnlab.attention.states import NOTHING, hide, pool

PAPER = "Zhai et al. 2021, arXiv:2105.14103"


class AFT(nn.Module):
    """`pooling` turns log weights (B, G, T, K) and values (B, G, T, D) into averages (B, G, T, D).

    G groups of channels: K = D gives each channel its own weight, K = 1 one to a whole group.
    """

    def __init__(self, shape: MixerShape, pooling: nn.Module, groups: int = 1, key_width: int | None = None) -> None:
        super().__init__()
        self.pooling = pooling
        self.groups = groups
        self.longest = getattr(pooling, "longest", None)
        self.sizes = [shape.width, shape.width if key_width is None else groups * key_width, shape.width]
        self.qkv = nn.Linear(shape.width, sum(self.sizes), bias=shape.bias)
        self.dropout = Dropout(shape.dropout)
        self.output = nn.Linear(shape.width, shape.width, bias=shape.bias)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        queries, keys, values = self.qkv(x).split(self.sizes, dim=-1)
        wide = torch.promote_types(x.dtype, torch.float32)
        keys, values = (split_heads(part.to(wide), self.groups) for part in (keys, values))
        at = positions_of(x) if cache is None else cache.positions(x)
        with torch.autocast(x.device.type, enabled=False):
            y = merge_heads(self.pooling(hide(keys, padding), values, at, cache))
        if cache is not None:
            cache.advance(x, padding)
        return self.output(self.dropout(queries.sigmoid() * y.to(queries.dtype)))


class BiasedPooling(nn.Module, ABC):
    """Averages with weights exp(K_j + w_tj): the whole sequence at once, or new tokens over a stored past."""

    @abstractmethod
    def bias(self, queries_at: Tensor, keys_at: Tensor) -> Tensor:
        """w for positions (T,) or (B, T) of queries and (S,) of keys; broadcasts to (B, G, T, S)."""

    @abstractmethod
    def whole(self, keys: Tensor, values: Tensor) -> Tensor:
        """The averages for a sequence from its beginning."""

    def forward(self, keys: Tensor, values: Tensor, at: Tensor, cache: Cache | None) -> Tensor:
        if cache is None:
            return self.whole(keys, values)
        begins = "keys" not in cache.state
        past_keys, past_values = cache.append("keys", keys, at), cache.append("values", values, at)
        return self.whole(keys, values) if begins else self.direct(past_keys, past_values, at)

    def direct(self, keys: Tensor, values: Tensor, at: Tensor) -> Tensor:
        """The definition, for few queries at (B, T) over S stored keys: O(T·S) memory."""
        slots = torch.arange(keys.shape[2], device=keys.device)
        unseen = (slots > at[..., None])[:, None]  # (B, 1, T, S)
        w = self.bias(at, slots).masked_fill(unseen, NOTHING)
        _, averages = pool(keys[:, :, None] + w[..., None], values[:, :, None])  # over (B, G, T, S, K)
        return averages[..., 0, :]
