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
    """The reason why compiling does not work on this machine, from a trial; empty if it works."""

    def trial(x: Tensor) -> Tensor:
        return x.sin() + 1

    try:
        torch.compile(trial, dynamic=True)(torch.ones(4, device=device))
    except Exception as error:  # compilers raise many kinds
        return first_line(error)
    return ""
