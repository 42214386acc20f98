"""RMSNorm in few passes over its input.

    y = n ⊙ g,   n = x / √(mean(x²) + ε)

On a CPU torch puts it together from a square, a mean and products, and goes back through each of them. Here the
way back is written down: with a = ∂L/∂y,   ∂L/∂x = (a ⊙ g - n · mean(a ⊙ n ⊙ g)) / √(mean(x²) + ε).
Zhang and Sennrich 2019, arXiv:1910.07467.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, eps: float) -> Tensor:
        mean_square = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square() / x.shape[-1]
        inverse = (mean_square + eps).rsqrt()
        normal = x * inverse
        ctx.save_for_backward(normal, gain, inverse)
        return normal * gain

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        normal, gain, inverse = ctx.saved_tensors
        product = grad * normal
        mean = (product @ gain / gain.numel()).unsqueeze(-1)
        return (grad * gain).addcmul_(normal, mean, value=-1).mul_(inverse), product.flatten(0, -2).sum(0), None


class RMSNorm(nn.RMSNorm):
    """torch's own, but for fp32 on a CPU."""

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or x.dtype != torch.float32:
            return super().forward(x)
        y: Tensor = _Normalise.apply(x, self.weight, torch.finfo(x.dtype).eps)
        return y
