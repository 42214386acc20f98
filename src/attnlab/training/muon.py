"""Muon: momentum whose matrices are orthogonalised before the step; AdamW for all other parameters.

    M ← μM + (1 - μ)G        U = (1 - μ)G + μM  (Nesterov)        W ← W - η √max(1, rows/cols) · orth(U)

orth(U) replaces the singular values of U by values near 1, with five Newton-Schulz iterations
X ← aX + (bA + cA²)X, A = XXᵀ (Jordan et al., 2024; kellerjordan.github.io/posts/muon).

`torch.optim.Muon` iterates in bf16, which is slow on most CPUs and kills the process on some. This one
iterates on a CPU in the precision of the run and processes all matrices of one shape together. Parameter groups
with `"muon": True` use Muon; the others use AdamW, the parent class, so one optimizer has them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalised(
    matrices: Tensor, iterations: int = 5, eps: float = 1e-7, dtype: torch.dtype | None = None
) -> Tensor:
    """Matrices (N, rows, cols) with their singular values pushed towards 1, computed in `dtype` (None: their own)."""
    a, b, c = COEFFICIENTS
    x = matrices.to(dtype or matrices.dtype)
    wide = x if x.size(-2) <= x.size(-1) else x.mT
    wide = wide / wide.norm(dim=(-2, -1), keepdim=True).clamp(min=eps)
    for _ in range(iterations):
        gram = wide @ wide.mT  # (N, r, r) with r the shorter side
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    turned = wide if x.size(-2) <= x.size(-1) else wide.mT
    return turned.to(matrices.dtype)


class Muon(torch.optim.AdamW):
    """Muon for the groups marked `muon`, AdamW for the others."""

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        momentum: float = 0.95,
        iterate_in: torch.dtype | None = None,
        **adamw: Any,
    ) -> None:
        super().__init__([{"muon": False, "momentum": momentum, **group} for group in groups], **adamw)
        self.iterate_in = iterate_in

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        groups = self.param_groups
        for group in groups:
            if group["muon"]:
                self._step_matrices(group)
        self.param_groups = [group for group in groups if not group["muon"]]
        try:
            return super().step(closure)
        finally:
            self.param_groups = groups

    def _step_matrices(self, group: dict[str, Any]) -> None:
        with_gradient = [p for p in group["params"] if p.grad is not None]
        with_gradient.sort(key=lambda p: tuple(p.shape))
        for shape, same in groupby(with_gradient, key=lambda p: tuple(p.shape)):
            parameters = list(same)
            momenta = torch.stack([self._momentum(p, group["momentum"]) for p in parameters])
            # A GPU has bf16; on a CPU it must have been tried, as it is for a run in bf16.
            dtype = torch.bfloat16 if momenta.device.type != "cpu" else self.iterate_in
            updates = orthogonalised(momenta, dtype=dtype)
            rate = group["lr"] * math.sqrt(max(1.0, shape[0] / shape[1]))
            for parameter, update in zip(parameters, updates, strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-rate)

    def _momentum(self, parameter: Tensor, momentum: float) -> Tensor:
        state = self.state[parameter]
        gradient = parameter.grad
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
            state["step"] = torch.tensor(0.0)  # AdamW expects it in every state it loads
        state["momentum"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(state["momentum"], momentum)
