"""Weighted averages as small states that can be merged, carried along a sequence and kept in a cache.

A state (ℓ, y) is a set of values summed up: ℓ = log Σ exp(a_i) its weight, y = Σ exp(a_i - ℓ) v_i its
average. Two sets are merged without looking at their members again, and no exponent is ever positive:

    L = log(exp ℓ + exp ℓ'),   Y = exp(ℓ - L) y + exp(ℓ' - L) y'

Log weights are (..., T, K) with K = D, one for each channel, or K = 1, one for all of them; averages are
(..., T, D). All sums are in 32 bits or more.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention.cache import Cache

State = tuple[Tensor, Tensor]

NOTHING = -1e30
"""The log weight of nothing. Finite, so that the difference of two of them is 0 and not nan."""


def hide(logits: Tensor, padding: Tensor | None) -> Tensor:
    """Log weights (B, H, T, K) with those of padding (B, T) taken away."""
    return logits if padding is None else logits.masked_fill(~padding[:, None, :, None], NOTHING)


def merge(*states: State) -> State:
    """The union of disjoint sets of values."""
    logs = torch.stack([log for log, _ in states])
    total = logs.logsumexp(0)
    average = torch.stack([(log - total).exp() * y for log, y in states]).sum(0)
    return total, average


def pool(logits: Tensor, values: Tensor, dim: int = -2) -> State:
    """The state of all values along `dim`, which is kept with size 1."""
    total = logits.logsumexp(dim, keepdim=True)
    return total, ((logits - total).exp() * values).sum(dim, keepdim=True)


def prefixes(logits: Tensor, values: Tensor, start: State | None = None) -> State:
    """The states of the first 1, 2, …, T values, after those in `start` (..., 1, K), (..., 1, D).

    The averages follow y_t = exp(ℓ_{t-1} - ℓ_t) y_{t-1} + exp(a_t - ℓ_t) v_t. With chunks of √T, one loop
    runs inside all chunks at once and one from chunk to chunk: O(T) time and memory in 2√T steps.
    """
    if start is not None:
        logits, values = torch.cat((start[0], logits), -2), torch.cat((start[1], values), -2)
    length = logits.shape[-2]
    size = math.isqrt(length - 1) + 1
    missing = -length % size
    logits = F.pad(logits, (0, 0, 0, missing), value=NOTHING)
    values = F.pad(values, (0, 0, 0, missing))

    logs = logits.logcumsumexp(-2)
    decay = (logs[..., :-1, :] - logs[..., 1:, :]).exp()
    decay = F.pad(decay, (0, 0, 1, 0)).unflatten(-2, (-1, size))  # (..., chunks, size, K)
    gain = ((logits - logs).exp() * values).unflatten(-2, (-1, size))
    y = gain[..., 0, :]
    inside = [y]
    for i in range(1, size):
        y = decay[..., i, :] * y + gain[..., i, :]
        inside.append(y)

    ends = logs[..., size - 1 :: size, :]  # (..., chunks, K)
    y = torch.zeros_like(y[..., 0, :])
    before = [y]  # the average of all chunks before this one
    for n in range(ends.shape[-2] - 1):
        last = ends[..., n - 1, :] if n else torch.full_like(ends[..., 0, :], NOTHING)
        y = (last - ends[..., n, :]).exp() * y + inside[-1][..., n, :]
        before.append(y)
    earlier = F.pad(ends[..., :-1, :], (0, 0, 1, 0), value=NOTHING)[..., None, :]  # (..., chunks, 1, K)
    fade = (earlier - logs.unflatten(-2, (-1, size))).exp()
    averages = torch.stack(inside, -2) + fade * torch.stack(before, -2)[..., None, :]

    first = 0 if start is None else 1
    return logs[..., first:length, :], averages.flatten(-3, -2)[..., first:length, :]


def shift(states: State, steps: int) -> State:
    """The state of step t moved to t + steps, with nothing in its place; backwards for negative steps."""
    T = states[0].shape[-2]
    move = (steps, -steps) if abs(steps) < T else (T, -T) if steps > 0 else (-T, T)
    return F.pad(states[0], (0, 0, *move), value=NOTHING), F.pad(states[1], (0, 0, *move))


def running(logits: Tensor, values: Tensor, cache: Cache | None, name: str) -> Tensor:
    """Averages of the values so far, continuing from and kept in `cache` under `name`.

    Padding has no weight and comes last in its row, so the last state is that of the last real token.
    """
    start = None
    if cache is not None and name in cache.state:
        start = cache.state[f"{name}_log"], cache.state[name]
    logs, averages = prefixes(logits, values, start)
    if cache is not None:
        cache.state[f"{name}_log"], cache.state[name] = logs[..., -1:, :], averages[..., -1:, :]
    return averages
