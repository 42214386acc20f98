"""RMSNorm in few passes over its input.

    y = n ⊙ g,   n = x / √(mean(x²) + ε)

On a CPU torch composes it from a square, a mean and products, and differentiates each of them. Here the
gradient is written out: with a = ∂L/∂y,   ∂L/∂x = (a ⊙ g - n · mean(a ⊙ n ⊙ g)) / √(mean(x²) + ε).
Zhang and Sennrich 2019, arXiv:1910.07467.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPSILON = torch.finfo(torch.float32).eps
"""As in torch, which computes in 32 bits for inputs of 16."""


class _Normalise(torch.autograd.Function):
    """In 32 bits; inputs, outputs and their gradients may have 16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        inverse = (norm.square() / x.shape[-1] + EPSILON).rsqrt()
        normal = x * inverse  # 32 bits, as `inverse`
        # For 16 bits x is saved instead: half the memory, for one more product in the backward pass.
        ctx.save_for_backward(normal if x.dtype == torch.float32 else x, gain, inverse)
        return (normal * gain).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        saved, gain, inverse = ctx.saved_tensors
        normal = saved if saved.dtype == torch.float32 else saved * inverse
        grad = grad.float()
        product = grad * normal
        mean = (product @ gain / gain.numel()).unsqueeze(-1)
        by_x = (grad * gain).addcmul_(normal, mean, value=-1).mul_(inverse)
        return by_x.to(saved.dtype), product.flatten(0, -2).sum(0)


class RMSNorm(nn.RMSNorm):
    """torch's own, except on a CPU in 32 bits or, with 32 bits of gain as under autocast, in 16."""

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.float64 or self.weight.dtype != torch.float32:
            return super().forward(x)
        if x.device.type != "cpu":  # the fused kernel takes one dtype, and sums in 32 bits by itself
            return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)
        y: Tensor = _Normalise.apply(x, self.weight)
        return y
