"""`torch.compile` for training steps, and whether it works on this machine."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from attnlab.base.errors import first_line


def compiled(model: nn.Module) -> nn.Module:
    """The model with the same parameters, compiled at its first call for batches of any size and length."""
    return cast(nn.Module, torch.compile(model, dynamic=True))


def why_not(device: str) -> str:
    """Why nothing can be compiled here, found out by trying; empty if it can."""

    def anything(x: Tensor) -> Tensor:
        return x.sin() + 1

    try:
        torch.compile(anything, dynamic=True)(torch.ones(4, device=device))
    except Exception as error:  # whatever is thrown by the compilers below
        return first_line(error)
    return ""
