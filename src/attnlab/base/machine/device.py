"""Which device: as asked, or what 'auto' means here."""

from __future__ import annotations

import torch

from attnlab.base.errors import UserError


def resolve_device(asked: str) -> str:
    """'auto' takes an accelerator if there is one; a device that is not there is an error, not a fallback."""
    if asked == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        kind = torch.device(asked)
    except RuntimeError:
        raise UserError(f"--device: {asked!r} is no device: use auto, cpu, cuda, cuda:1 or mps.") from None
    there = {
        "cpu": True,
        "cuda": (kind.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(kind.type, False):
        raise UserError(f"--device: {asked!r} is not on this machine: use --device auto or --device cpu.")
    return asked
