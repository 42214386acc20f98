"""Does any output of a mixer depend on a later token, and if so, how?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention.registry import MixerShape, build_mixer
from attnlab.base.errors import UserError


def check_future_gradient(audited: AuditedMixer) -> Finding:
    mixer, x = audited.build(), audited.tokens().requires_grad_()
    y = mixer(x)
    weights = torch.randn_like(y[0, 0])
    reach = torch.stack(  # (T, T): how much output t changes with token j
        [torch.autograd.grad(y[0, t] @ weights, x, retain_graph=True)[0][0].norm(dim=-1) for t in range(x.shape[1])]
    )
    return _future("future, by gradient", audited, reach.triu(1), "changes with", f"|∂y/∂x| up to {reach.max():.2g}")


def check_future_perturbation(audited: AuditedMixer) -> Finding:
    """Replace each token in turn, a little and a lot, and cut the sequence after each."""
    mixer, x = audited.build(), audited.tokens()
    T = x.shape[1]
    worst = torch.zeros(T, T, dtype=audited.dtype)
    with torch.no_grad():
        y = mixer(x)
        for size in (1.0, 30.0):
            changed = x.repeat(T, 1, 1)  # row j has token j replaced
            changed[torch.arange(T), torch.arange(T)] = size * audited.tokens(seed=2)[0]
            difference = (mixer(changed) - y).abs().amax(-1).nan_to_num(nan=float("inf")).T  # (t, j)
            worst = torch.maximum(worst, difference)
        for t in range(1, T, 7):
            shorter = (mixer(x[:, :t]) - y[:, :t]).abs().amax(-1)[0].nan_to_num(nan=float("inf"))
            worst[:t, t] = torch.maximum(worst[:t, t], shorter)
    worst = worst / y.abs().max()
    return _future("future, by perturbation", audited, worst.triu(1), "changes with", "by replacing and by cutting")


def _future(check: str, audited: AuditedMixer, leaks: Tensor, verb: str, method: str) -> Finding:
    worst = float(leaks.max())
    if worst <= audited.tolerance:
        return Finding(check, True, f"at most {worst:.1g} above the diagonal ({method})")
    t, j = divmod(int(leaks.argmax()), leaks.shape[1])
    evidence = f"output {t} {verb} token {j}, by {worst:.2g}"
    return Finding(check, False, evidence + ("; " + how if (how := _how_it_leaks(audited)) else ""))


@torch.no_grad()
def _how_it_leaks(audited: AuditedMixer) -> str:
    """With one head, a leak through the normaliser only rescales what the output would be.

    So the changes that many different futures cause at one position are all on one line.
    """
    if one_head(audited) is None:
        return ""
    mixer, x = audited.build(heads=1), audited.tokens()
    futures = x.repeat(12, 1, 1)
    half = x.shape[1] // 2
    futures[:, half:] = 3 * audited.tokens(batch=12, seed=3)[:, half:]
    changes = (mixer(futures) - mixer(x))[:, half - 1]  # (12, C)
    sizes = torch.linalg.svdvals(changes)
    if not sizes.isfinite().all() or sizes[1] > 1e-6 * sizes[0]:
        return "it reads the content of later tokens"
    return "later tokens only rescale it: they are in the sum that normalises the weights"


@dataclass(frozen=True)
class Finding:
    check: str
    passed: bool | None
    """None: not decidable on this machine, or nothing was promised."""
    evidence: str


@dataclass(frozen=True)
class AuditedMixer:
    """A mixer by name: how to build it, and the precision in which its numbers are compared."""

    name: str
    shape: MixerShape
    dtype: torch.dtype

    @property
    def tolerance(self) -> float:
        return 1e-9 if self.dtype == torch.float64 else 1e-4

    def build(self, **changes: Any) -> nn.Module:
        torch.manual_seed(0)
        mixer = build_mixer(self.name, replace(self.shape, **changes))
        return mixer.to(self.dtype).eval()

    def tokens(self, batch: int = 1, seed: int = 1) -> Tensor:
        """(B, T, C) with T the whole context."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(batch, self.shape.context, self.shape.width, generator=generator).to(self.dtype)

    def differs(self, a: Tensor, b: Tensor) -> float:
        """The largest difference, in units of the largest number; nan counts as infinite."""
        difference = (a - b).abs().max() / b.abs().max().clamp_min(1e-30)
        return float(difference.nan_to_num(nan=float("inf")))


def audited_mixer(name: str, shape: MixerShape) -> AuditedMixer:
    """In 64 bits, where no rounding looks like a fault; in 32 if the mixer supports nothing else."""
    audited = AuditedMixer(name, shape, torch.float64)
    mixer = audited.build()
    try:
        y = mixer(audited.tokens())
    except UserError:
        audited = AuditedMixer(name, shape, torch.float32)
        y = audited.build()(audited.tokens())
    if y.dtype != audited.dtype:
        audited = AuditedMixer(name, shape, torch.float32)
    return audited


def one_head(audited: AuditedMixer) -> MixerShape | None:
    """The shape with a single head, if the mixer can be built with it."""
    shape = replace(audited.shape, heads=1)
    try:
        build_mixer(audited.name, shape)(audited.tokens().float())
    except UserError:
        return None
    return shape


DEFAULT = MixerShape(width=16, heads=4, context=72)


def sees_future(name: str, shape: MixerShape = DEFAULT) -> str | None:
    """The evidence that a mixer's outputs depend on later tokens; None when they do not."""
    with torch.random.fork_rng(devices=[]):
        audited = audited_mixer(name, shape)
        for check in (check_future_gradient, check_future_perturbation):
            finding = check(audited)
            if finding.passed is False:
                return finding.evidence
    return None
