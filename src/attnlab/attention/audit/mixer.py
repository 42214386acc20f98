"""The mixer under audit: how it is built, called and compared.

Its weights are not those of the first step. A projection that starts at zero, or a gate, hides what is behind it, and
a leak there would open with the first update. So every trained number is moved a little and every tensor of zeros is
drawn anew (`open_paths`): what is judged is what training can reach.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.attention.registry import MixerShape, build_mixer
from attnlab.base.errors import UserError

DEFAULT = MixerShape(width=16, heads=4, context=136)
"""Longer than the chunks and windows of the variants and past 128, small enough for a few seconds."""
SHORTEST = 12
LENGTHS = (12, 17, 33, 65, 129, 257, 513, 1025, 2049, 4097)
"""Just past powers of two, where code that works in blocks begins a new one."""
WHOLE = 257
"""Up to this length every pair of positions is checked; beyond it, as many positions as this, spread out."""


@dataclass(frozen=True)
class Finding:
    check: str
    passed: bool | None
    """None: not decidable on this machine, nothing was promised, or an earlier check leaves nothing to judge."""
    evidence: str


@dataclass(frozen=True)
class AuditedMixer:
    """A mixer by name, and the precision in which its numbers are compared."""

    name: str
    shape: MixerShape
    dtype: torch.dtype

    @property
    def tolerance(self) -> float:
        return 1e-9 if self.dtype == torch.float64 else 1e-4

    @property
    def lengths(self) -> list[int]:
        """The lengths of sequences to check, the context itself last."""
        return [length for length in LENGTHS if length < self.shape.context] + [self.shape.context]

    def build(self, training: bool = False, **changes: Any) -> nn.Module:
        """A new mixer, always with the same weights, all paths open."""
        torch.manual_seed(0)
        mixer = build_mixer(self.name, replace(self.shape, **changes)).to(self.dtype)
        open_paths(mixer, self.tokens(length=min(self.shape.context, 33)))
        return mixer.train(training)

    def tokens(self, batch: int = 1, seed: int = 1, length: int | None = None) -> Tensor:
        """(B, T, C); T is the whole context if it is not given."""
        generator = torch.Generator().manual_seed(seed)
        size = (batch, length or self.shape.context, self.shape.width)
        return torch.randn(*size, generator=generator).to(self.dtype)

    def differs(self, a: Tensor, b: Tensor) -> float:
        """The largest difference, in units of the largest number; nan counts as infinite."""
        difference = (a - b).abs().max() / b.abs().max().clamp_min(1e-30)
        return float(difference.nan_to_num(nan=float("inf")))


def run(
    mixer: nn.Module, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None, seed: int = 7
) -> Tensor:
    """One call with its random numbers fixed, so that dropout in training is the same function each time."""
    torch.manual_seed(seed)
    return mixer(x, padding, cache) if cache is not None else mixer(x) if padding is None else mixer(x, padding)


def open_paths(mixer: nn.Module, x: Tensor) -> None:
    """Move every trained number: zeros to something of a usual size, the others by a tenth of their spread.

    A path that is still closed, by a gate that no gradient passes, is given a few steps of training to open it.
    """
    with torch.no_grad():
        for parameter in mixer.parameters():
            if parameter.requires_grad and parameter.is_floating_point() and parameter.numel():
                parameter.add_(_movement(parameter))
    if any(parameter.grad is None or not parameter.grad.any() for parameter in _trained(mixer, x)):
        for _ in range(3):
            with torch.no_grad():
                for parameter in mixer.parameters():
                    if parameter.grad is not None and parameter.grad.isfinite().all():
                        parameter.sub_(0.1 * parameter.grad / parameter.grad.abs().max().clamp_min(1e-30))
            _trained(mixer, x)
    mixer.zero_grad(set_to_none=True)


def _movement(parameter: Tensor) -> Tensor:
    noise = torch.randn_like(parameter)
    if not parameter.any():
        # Positive for gates, which may be behind a relu; matrices of a size that keeps the size of their input.
        return 0.1 + 0.3 * noise.abs() if parameter.dim() < 2 else noise / parameter.shape[-1] ** 0.5
    spread = parameter.std() if parameter.numel() > 1 else parameter.new_zeros(())
    return 0.1 * noise * (spread if spread > 0 else parameter.abs().mean())


def _trained(mixer: nn.Module, x: Tensor) -> list[nn.Parameter]:
    """The trained parameters with the gradient of a random function of the output."""
    mixer.eval().zero_grad(set_to_none=True)
    trained = [parameter for parameter in mixer.parameters() if parameter.requires_grad]
    try:
        with torch.enable_grad():
            y = run(mixer, x)
            (y * torch.randn_like(y)).sum().backward()
    except (UserError, RuntimeError):
        return []  # a mixer that fails, or has no gradient at all: the checks report it
    return trained


def audited_mixer(name: str, shape: MixerShape) -> AuditedMixer:
    """In 64 bits, where no rounding looks like a fault; in 32 if the mixer supports nothing else."""
    if shape.context < SHORTEST:
        raise UserError(f"a context of {shape.context} is too short for an audit: give at least {SHORTEST}.")
    audited = AuditedMixer(name, shape, torch.float64)
    mixer = audited.build()
    try:
        y = run(mixer, audited.tokens())
    except UserError:
        audited = AuditedMixer(name, shape, torch.float32)
        y = run(audited.build(), audited.tokens())
    if y.dtype != audited.dtype or _rounds(audited):
        audited = AuditedMixer(name, shape, torch.float32)
    return audited


@torch.no_grad()
def _rounds(audited: AuditedMixer) -> bool:
    """Whether it computes in fewer than 64 bits inside: the second difference of a smooth function over a step of 1e-7
    is some 1e-14, that of a rounded one as large as a rounding."""
    mixer, x = audited.build(), audited.tokens()
    step = 1e-7 * audited.tokens(seed=4)
    ends = run(mixer, x + step) + run(mixer, x - step)
    return 1e-10 < audited.differs(ends, 2 * run(mixer, x)) < 1e-5


def one_head(audited: AuditedMixer) -> MixerShape | None:
    """The shape with a single head, if the mixer can be built with it."""
    shape = replace(audited.shape, heads=1)
    try:
        build_mixer(audited.name, shape)(audited.tokens(length=SHORTEST).float())
    except UserError:
        return None
    return shape
