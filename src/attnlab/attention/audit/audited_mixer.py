"""The mixer under audit, and the findings of a check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention.registry import build_mixer
from attnlab.attention.variant import MixerShape
from attnlab.base.errors import UserError


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
