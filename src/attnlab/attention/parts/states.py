"""Weighted averages as small states that are carried along a sequence and stored in a cache.

A state (ℓ, y) summarises a set of values: ℓ = log Σ exp(a_i) its weight, y = Σ exp(a_i - ℓ) v_i its
average. A state replaces its set in any larger sum, and no exponent is ever positive, so nothing
overflows and no large weight can erase the values before it.

Log weights are (..., T, K) with K = D, one per channel, or K = 1, one for all of them; averages are
(..., T, D). All sums are in 32 bits or more.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.attention.parts.cache import Cache

State = tuple[Tensor, Tensor]

NOTHING = -1e30
"""The log weight of an empty set. Finite, so that the difference of two of them is 0 and not nan."""


def hide(logits: Tensor, padding: Tensor | None) -> Tensor:
    """Log weights (B, H, T, K) with those of padding (B, T) removed."""
    return logits if padding is None else logits.masked_fill(~padding[:, None, :, None], NOTHING)


def pool(logits: Tensor, values: Tensor, dim: int = -2) -> State:
    """The state of all values along `dim`, which keeps size 1."""
    total = logits.logsumexp(dim, keepdim=True)
    return total, ((logits - total).exp() * values).sum(dim, keepdim=True)


def prefixes(logits: Tensor, values: Tensor, start: State | None = None) -> State:
    """The states of the first 1, 2, …, T values, after those in `start` (..., 1, K), (..., 1, D).

    With m_t the largest of a_1 … a_t, the sums s_t = Σ exp(a_i - m_t) v_i follow
    s_t = exp(m_{t-1} - m_t) s_{t-1} + exp(a_t - m_t) v_t, and so do the weights, with 1 for v.
    """
    if start is not None:
        logits, values = torch.cat((start[0], logits), -2), torch.cat((start[1], values), -2)
    top = logits.detach().cummax(-2).values  # cancels in the result, so it needs no gradient
    gain = (logits - top).exp()
    columns = top if top.shape[-1] == 1 else torch.cat((top, top), -1)
    sums, weights = decaying_sums(columns, torch.cat((gain * values, gain), -1)).split(
        (values.shape[-1], gain.shape[-1]), -1
    )
    first = 0 if start is None else 1
    return (top + weights.log())[..., first:, :], (sums / weights)[..., first:, :]


def decaying_sums(top: Tensor, gain: Tensor) -> Tensor:
    """s_t = exp(top_{t-1} - top_t) s_{t-1} + gain_t for a rising top (..., T, 1 or D) and gains (..., T, D).

    In chunks of √T: one loop runs inside all chunks at once, one from chunk to chunk. O(T) time and memory
    in 2√T steps. Unbound, not indexed: the gradient of an index has the size of the whole tensor, T per step.
    """
    length = top.shape[-2]
    size = math.isqrt(length - 1) + 1
    filler = -length % size
    top = torch.cat((top, top[..., -1:, :].expand(*top.shape[:-2], filler, top.shape[-1])), -2)
    top = top.unflatten(-2, (-1, size))  # (..., chunks, size, ·)
    first, *gains = F.pad(gain, (0, 0, 0, filler)).unflatten(-2, (-1, size)).unbind(-2)

    decays = (top[..., :-1, :] - top[..., 1:, :]).exp().unbind(-2)
    inside = [first]  # sums since the beginning of the chunk
    for decay, new in zip(decays, gains, strict=True):
        inside.append(torch.addcmul(new, decay, inside[-1]))

    ends = top[..., -1, :]  # (..., chunks, ·)
    earlier = torch.cat((ends[..., :1, :], ends[..., :-1, :]), -2)
    fades = (earlier - ends).exp().unbind(-2)
    whole = inside[-1].unbind(-2)  # sums of each chunk alone
    before = [torch.zeros_like(whole[0])]  # sums of all chunks before, as of the end of the last of them
    for fade, new in zip(fades[:-1], whole[:-1], strict=True):
        before.append(torch.addcmul(new, fade, before[-1]))
    fade = (earlier[..., None, :] - top).clamp(max=0).exp()  # the first chunk has nothing to fade
    sums = torch.stack(inside, -2) + fade * torch.stack(before, -2)[..., None, :]
    return sums.flatten(-3, -2)[..., :length, :]


def shift(states: State, steps: int) -> State:
    """The state of step t moved to t + steps, empty states in its place; backwards for negative steps."""
    T = states[0].shape[-2]
    move = (steps, -steps) if abs(steps) < T else (T, -T) if steps > 0 else (-T, T)
    return F.pad(states[0], (0, 0, *move), value=NOTHING), F.pad(states[1], (0, 0, *move))


def running(logits: Tensor, values: Tensor, cache: Cache | None, name: str) -> Tensor:
    """Averages of the values so far, continued from and stored in `cache` under `name`.

    Padding has no weight and comes last in its row, so the last state is that of the last real token.
    """
    start = None
    if cache is not None and name in cache.state:
        start = cache.state[f"{name}_log"], cache.state[name]
    logs, averages = prefixes(logits, values, start)
    if cache is not None:
        cache.state[f"{name}_log"], cache.state[name] = logs[..., -1:, :], averages[..., -1:, :]
    return averages
