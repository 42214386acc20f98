"""The parts of a Transformer block besides attention: normalisations and MLPs, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.parts.rms_norm import RMSNorm
from attnlab.base.errors import UserError, unknown


class _Square(torch.autograd.Function):
    """r² of r = max(x, 0), with the derivative 2r by x: it is 0 where r is, so no mask is needed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = F.relu(x)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (positive,) = ctx.saved_tensors
        return (grad * positive).mul_(2)


class SquaredReLU(nn.Module):
    """max(x, 0)². So et al. 2021, Primer."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = _Square.apply(x)
        return y


class MLP(nn.Module):
    """Linear to `inside` (default 4C), activation, linear back to C."""

    def __init__(self, width: int, activation: nn.Module, bias: bool, inside: int | None = None) -> None:
        super().__init__()
        inside = inside or 4 * width
        self.wide = nn.Linear(width, inside, bias=bias)
        self.activation = activation
        self.output = nn.Linear(inside, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.activation(self.wide(x)))


class GatedMLP(nn.Module):
    """(silu(xG) ⊙ xW) A. Shazeer 2020. With 8/3 of the width inside it has as many weights as MLP."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        inside = 8 * width // 3
        self.wide = nn.Linear(width, 2 * inside, bias=bias)
        self.output = nn.Linear(inside, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.wide(x).chunk(2, dim=-1)
        return self.output(F.silu(gate) * value)


NORMS: dict[str, Callable[[int], nn.Module]] = {"layernorm": nn.LayerNorm, "rmsnorm": RMSNorm}

MLPS: dict[str, Callable[[int, bool], nn.Module]] = {
    "gelu": lambda width, bias: MLP(width, nn.GELU(), bias),
    "relu": lambda width, bias: MLP(width, nn.ReLU(), bias),
    "relu2": lambda width, bias: MLP(width, SquaredReLU(), bias),
    "silu": lambda width, bias: MLP(width, nn.SiLU(), bias),
    "swiglu": GatedMLP,
}


def build_norm(name: str, width: int) -> nn.Module:
    if name not in NORMS:
        raise UserError(unknown("norm", name, NORMS))
    return NORMS[name](width)


def build_mlp(name: str, width: int, bias: bool) -> nn.Module:
    if name not in MLPS:
        raise UserError(unknown("activation", name, MLPS))
    return MLPS[name](width, bias)
