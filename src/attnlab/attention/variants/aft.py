"""Attention Free Transformer, in four forms.

    Y_t = σ(Q_t) ⊙ Σ_j exp(K_j + w_tj) ⊙ V_j / Σ_j exp(K_j + w_tj)

Queries are not compared with keys. Keys are the log weights of a token, one per channel; the learned w_tj is
that of position j for position t; the query only gates the result. The forms differ in w.

Zhai et al. 2021, "An attention free Transformer", arXiv:2105.14103.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.attention.parts.projections import merge_heads, split_heads
from attnlab.attention.parts.states import NOTHING, State, hide, pool, prefixes, running, shift
from attnlab.attention.parts.weighting import Dropout, positions_of
from attnlab.attention.registry import MixerShape, variant

PAPER = "Zhai et al. 2021, arXiv:2105.14103"


class AFT(nn.Module):
    """`pooling` turns log weights (B, G, T, K) and values (B, G, T, D) into averages (B, G, T, D).

    G groups of channels: K = D is one weight per channel, K = 1 one per group.
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
        """The definition, for few queries at (T,) or (B, T) over S stored keys: O(T·S) memory."""
        slots = torch.arange(keys.shape[2], device=keys.device)
        unseen = slots > at[..., None]
        unseen = unseen[:, None] if at.dim() == 2 else unseen  # (B, 1, T, S) or (T, S)
        w = self.bias(at, slots).masked_fill(unseen, NOTHING)
        _, averages = pool(keys[:, :, None] + w[..., None], values[:, :, None])  # over (B, G, T, S, K)
        return averages[..., 0, :]


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
        w = w - w.amax(-1, keepdim=True).detach()  # a factor of exp(w) that depends on t alone cancels
        if not self.causal:
            sums, weights = by_product(w, keys, values, keys.detach().amax(-2, keepdim=True))
            return sums / weights
        top = keys.detach().cummax(-2).values  # as does a factor of exp(K) that all j ≤ t share
        # Split, not sliced: the gradient of a slice has the size of the whole, T² for each of T/BLOCK rows.
        rows = enumerate(w.split(BLOCK))
        return torch.cat([self._block(n * BLOCK, part, keys, values, top) for n, part in rows], 2)

    def _block(self, a: int, w: Tensor, keys: Tensor, values: Tensor, top: Tensor) -> Tensor:
        """Averages for positions a … b-1, with their rows of w.

        Keys before a by a matrix product, those from a on pair by pair.
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
    """Σ_j exp(w_tj + K_j - top) V_j and the same without V, for w (T, S) and keys (B, G, S, K), all visible.

    exp(K + w) = exp(w) exp(K) makes the sum over j a matrix product.
    """
    weights, masses = w.exp(), (keys - top).exp()
    return weights @ (masses * values), weights @ masses


@variant("aft-full", equation="σ(Q) ⊙ Σ exp(K_j+w_tj)V_j / Σ exp(K_j+w_tj)", paper=PAPER, time=2, memory=2)
def aft_full(shape: MixerShape) -> AFT:
    return AFT(shape, FullPooling(shape.context, shape.causal))


class WindowPooling(BiasedPooling):
    """`table` (G or 1, context or 1, offsets) contains w for t - j = 0 … s-1, or 1-s … s-1 when not causal."""

    def __init__(self, table: nn.Parameter, window: int, causal: bool) -> None:
        super().__init__()
        self.table, self.window, self.causal = table, window, causal
        self.longest = table.shape[1] if table.shape[1] > 1 else None

    def bias(self, queries_at: Tensor, keys_at: Tensor) -> Tensor:
        offset = queries_at[..., None] - keys_at  # (T, S) or (B, T, S)
        column = offset if self.causal else offset + self.window - 1
        inside = (column >= 0) & (column < self.table.shape[-1])
        row = torch.zeros_like(offset) if self.longest is None else queries_at[..., None].expand_as(offset)
        w = self.table[:, row, column.clamp(0, self.table.shape[-1] - 1)] * inside  # (G, T, S) or (G, B, T, S)
        return w if w.dim() == 3 else w.transpose(0, 1)

    def whole(self, keys: Tensor, values: Tensor) -> Tensor:
        T, s = keys.shape[2], self.window
        w = (self.table if self.longest is None else self.table[:, :T])[..., None]  # (G, T, offsets, 1)
        beyond = [shift(prefixes(keys, values), s)]
        top = keys.detach().cummax(-2).values
        ahead = 0
        if not self.causal:
            beyond.append(shift(_reversed(prefixes(*_reversed((keys, values)))), -s))
            top = keys.detach().amax(-2, keepdim=True)
            ahead = s - 1
        # No visible log weight exceeds `top`, and one is near it: it cancels and needs no gradient.
        top = top + w.detach().amax(2).clamp(min=0)
        weights = torch.stack([(log - top).exp() for log, _ in beyond])
        sums = (weights * torch.stack([average for _, average in beyond])).sum(0)
        total = weights.sum(0)
        near_keys = F.pad(keys, (0, 0, s - 1, ahead), value=NOTHING)
        near_values = F.pad(values, (0, 0, s - 1, ahead))
        for column in range(w.shape[2]):
            j = w.shape[2] - 1 - column  # the key of row 0 in this column, as an index of the padded keys
            weight = (near_keys[:, :, j : j + T] + w[:, :, column] - top).exp()
            total = total + weight
            sums = sums + weight * near_values[:, :, j : j + T]
        return sums / total


def _reversed(states: State) -> State:
    return states[0].flip(-2), states[1].flip(-2)


def window_table(groups: int, rows: int, window: int, causal: bool) -> nn.Parameter:
    return nn.Parameter(torch.randn(groups, rows, window if causal else 2 * window - 1) * 0.1)


@variant("aft-local", equation="aft-full with w_tj = 0 for |t-j| ≥ s", paper=PAPER, time=1, memory=1)
def aft_local(shape: MixerShape, window: int = 16) -> AFT:
    table = window_table(1, shape.context, window, shape.causal)
    return AFT(shape, WindowPooling(table, window, shape.causal))


@variant("aft-conv", equation="aft-full with w_tj = w_(t-j) for |t-j| < s", paper=PAPER, time=1, memory=1)
def aft_conv(shape: MixerShape, window: int = 16) -> AFT:
    table = window_table(shape.heads, 1, window, shape.causal)
    pooling = WindowPooling(table, window, shape.causal)
    return AFT(shape, pooling, groups=shape.heads, key_width=1)
