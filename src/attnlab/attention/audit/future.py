"""Does any output of a mixer depend on a later token, and if so, how?

Both in evaluation and in training, at several lengths: a mask that is only applied in `eval()`, statistics over the
batch, or code that works in blocks leak in one of these cases only.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnlab.attention.audit.basics import MODES, check_deterministic, check_finite, check_input, check_state
from attnlab.attention.audit.mixer import DEFAULT, WHOLE, AuditedMixer, Finding, audited_mixer, one_head, run
from attnlab.attention.registry import MixerShape

AT_ONCE = 4096
"""Tokens per call."""
Reach = Callable[[nn.Module, AuditedMixer, Tensor], Tensor]
"""(T, T): how much output t changes with token j."""


def check_future_gradient(audited: AuditedMixer) -> Finding:
    """No output has a derivative by a later token."""
    return _future("future, by gradient", audited, reach_by_gradient)


def check_future_perturbation(audited: AuditedMixer) -> Finding:
    """No output changes when later tokens are replaced, a little and a lot, or cut off."""
    return _future("future, by perturbation", audited, reach_by_perturbation)


def _future(check: str, audited: AuditedMixer, reach: Reach) -> Finding:
    worst = 0.0
    for length in audited.lengths:
        for training in MODES.values():
            leaks = reach(audited.build(training), audited, audited.tokens(length=length)).triu(1)
            worst = max(worst, float(leaks.max()))
            if float(leaks.max()) > audited.tolerance:
                t, j = divmod(int(leaks.argmax()), length)
                where = f"output {t} changes with token {j} of {length}, by {float(leaks.max()):.2g}"
                only = ", in training mode only" if training else ""  # evaluation comes first
                how = how_it_leaks(audited, length, training)
                return Finding(check, False, f"{where}{only}{f'; {how}' if how else ''}")
    tried = f"lengths {', '.join(map(str, audited.lengths))}"
    return Finding(check, True, f"at most {worst:.1g} above the diagonal ({tried}; evaluation and training)")


def reach_by_gradient(mixer: nn.Module, audited: AuditedMixer, x: Tensor) -> Tensor:
    direction = torch.randn(x.shape[-1], generator=torch.Generator().manual_seed(5)).to(x.dtype)
    reach = x.new_zeros(x.shape[1], x.shape[1])
    for rows in _together(mixer, audited, x):
        copies = x.repeat(len(rows), 1, 1).requires_grad_()
        y = run(mixer, copies)  # row n is asked for the gradient of output rows[n]
        if y.requires_grad:
            asked = (y[torch.arange(len(rows)), rows] @ direction).sum()
            (gradient,) = torch.autograd.grad(asked, copies, allow_unused=True)
            if gradient is not None:
                reach[rows] = gradient.norm(dim=-1)
    return reach.nan_to_num(nan=0.0, posinf=0.0)


@torch.no_grad()
def reach_by_perturbation(mixer: nn.Module, audited: AuditedMixer, x: Tensor) -> Tensor:
    """Differences that are not numbers do not count: they are overflow, which has a check of its own."""
    y, other = run(mixer, x), audited.tokens(seed=2, length=x.shape[1])
    reach = y.new_zeros(x.shape[1], x.shape[1])
    for rows in _together(mixer, audited, x):
        for size in (1.0, 30.0):
            changed = x.repeat(len(rows), 1, 1)  # row n has token rows[n] replaced
            changed[torch.arange(len(rows)), rows] = size * other[0, rows]
            difference = (run(mixer, changed) - y).abs().amax(-1).T  # (t, n)
            reach[:, rows] = torch.maximum(reach[:, rows], difference.nan_to_num(nan=0.0, posinf=0.0))
    if not mixer.training:  # in training, dropout draws other numbers for another length
        for end in range(1, x.shape[1], 7):
            shorter = (run(mixer, x[:, :end]) - y[:, :end]).abs().amax(-1)[0]
            reach[:end, end] = torch.maximum(reach[:end, end], shorter.nan_to_num(nan=0.0, posinf=0.0))
    return reach / y.abs().max().clamp_min(1e-30)


@torch.no_grad()
def _together(mixer: nn.Module, audited: AuditedMixer, x: Tensor) -> list[list[int]]:
    """The positions to check, in groups for one call each: one by one if the rows of a batch are not independent."""
    other = audited.tokens(seed=3, length=x.shape[1])
    together, alone = run(mixer, torch.cat((x, other))), torch.cat((run(mixer, x), run(mixer, other)))
    apart = audited.differs(together, alone) <= audited.tolerance
    size = max(1, AT_ONCE // x.shape[1]) if apart else 1
    every = positions(x.shape[1])
    return [every[start : start + size] for start in range(0, len(every), size)]


def positions(length: int) -> list[int]:
    """All of them; of a long sequence as many as WHOLE, evenly spread, the last among them."""
    if length <= WHOLE:
        return list(range(length))
    return sorted({round(n * (length - 1) / (WHOLE - 1)) for n in range(WHOLE)})


@torch.no_grad()
def how_it_leaks(audited: AuditedMixer, length: int, training: bool) -> str:
    """By statistics, the normaliser or the content of later tokens, from all positions before several cuts.

    Statistics (a mean or variance over the sequence) are the same when later tokens are reflected at their mean. A
    normaliser rescales what an output of one head would be: the changes by many futures are then on one line, at every
    position. Anything else reads values.
    """
    if one_head(audited) is None:
        return ""
    mixer, x = audited.build(training, heads=1), audited.tokens(length=length)
    y = run(mixer, x)
    by_statistics: list[bool] = []
    by_normaliser: list[bool] = []
    for cut in sorted({max(1, length * part // 4) for part in (1, 2, 3)} | {length - 1}):
        changes = []
        for seed in range(8):
            future = x.clone()
            future[:, cut:] = 3 * audited.tokens(seed=10 + seed, length=length)[:, cut:]
            changes.append((run(mixer, future) - y)[0, :cut])  # (cut, C)
        moved = torch.stack(changes, 1)  # (cut, futures, C)
        largest = float(moved.abs().max())
        if not largest > audited.tolerance * float(y.abs().max()):
            continue
        if length - cut > 2:  # fewer have no other arrangement with the same mean and variance
            reflected = x.clone()
            reflected[:, cut:] = 2 * x[:, cut:].mean(1, keepdim=True) - x[:, cut:]
            by_statistics.append(float((run(mixer, reflected) - y)[0, :cut].abs().max()) <= 1e-6 * largest)
        sizes = torch.linalg.svdvals(moved)  # (cut, futures)
        by_normaliser.append(bool((sizes[:, 1] <= 1e-6 * sizes[:, 0].clamp_min(1e-6 * largest)).all()))
    if not by_normaliser:
        return ""
    if by_statistics and all(by_statistics):
        return "a sum over the sequence includes later tokens: their mean or variance reaches it"
    if all(by_normaliser):
        return "later tokens only rescale it: they are in the sum that normalises the weights"
    return "it reads the content of later tokens"


def sees_future(name: str, shape: MixerShape = DEFAULT) -> str | None:
    """The evidence that a mixer's outputs depend on later tokens; None when they do not, or when it is no function of
    its input, so that nothing can be said."""
    with torch.random.fork_rng(devices=[]):
        audited = audited_mixer(name, shape)
        for basic in (check_deterministic, check_input, check_state, check_finite):
            if basic(audited).passed is False:
                return None
        for check in (check_future_gradient, check_future_perturbation):
            finding = check(audited)
            if finding.passed is False:
                return finding.evidence
    return None
