"""AFT-local: position weights within a window only, w_tj = 0 for |t - j| ≥ s. Every token still counts.

    Y_t = σ(Q_t) ⊙ Σ_j exp(K_j + w_tj) ⊙ V_j / Σ_j exp(K_j + w_tj)

Zhai et al. 2021, arXiv:2105.14103. What lies outside the window is a running average, so O(T·s) time
and memory: linear in T.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.aft import AFT, PAPER, BiasedPooling
from attnlab.attention.registry import variant
from attnlab.attention.shape import MixerShape
from attnlab.attention.states import NOTHING, State, prefixes, shift


class WindowPooling(BiasedPooling):
    """`table` (G or 1, context or 1, offsets) holds w for t - j = 0 … s-1, or 1-s … s-1 when not causal."""

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
        # Nothing in sight of t exceeds `top`, and something is near it: it cancels and needs no gradient.
        top = top + w.detach().amax(2).clamp(min=0)
        weights = torch.stack([(log - top).exp() for log, _ in beyond])
        sums = (weights * torch.stack([average for _, average in beyond])).sum(0)
        total = weights.sum(0)
        near_keys = F.pad(keys, (0, 0, s - 1, ahead), value=NOTHING)
        near_values = F.pad(values, (0, 0, s - 1, ahead))
        for column in range(w.shape[2]):
            j = w.shape[2] - 1 - column  # the key of row 0 in this column, counted in the padded ones
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
