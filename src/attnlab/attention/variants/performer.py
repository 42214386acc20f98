"""Softmax attention in linear time, in expectation: FAVOR+.

    exp(q·k) = E_ω[ exp(ω·q - |q|²/2) exp(ω·k - |k|²/2) ],   ω ~ N(0, I)

so with R random directions the kernel of softmax attention is a product of positive features. Directions
that are orthogonal within blocks of D estimate it with less variance.

Choromanski et al. 2021, "Rethinking attention with Performers", arXiv:2009.14794. O(T) time and memory.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.attention.registry import MixerShape, variant
from attnlab.attention.variants.linear import KernelAttention


class RandomFeatures(nn.Module):
    """exp(ω·x - |x|²/2) for x = q / D^¼ and k / D^¼, whose product of vectors is q·k / √D."""

    directions: Tensor

    def __init__(self, head_width: int, count: int) -> None:
        super().__init__()
        # Not trained, but saved with the model, so that a loaded model computes the same.
        self.register_buffer("directions", orthogonal_directions(head_width, count))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        directions = self.directions.to(queries.dtype)
        # Factors that do not depend on the key cancel in the normaliser. So each query may be scaled by its
        # largest feature, and all keys by a constant: ω·k - |k|²/2 ≤ |ω|²/2, and e^60 leaves room for
        # sums. A maximum over the keys would cancel too, but depends on the future, and one long key
        # there could make the past underflow.
        q, k = _exponents(queries, directions), _exponents(keys, directions)
        excess = (directions.square().sum(-1).max() / 2 - 60).clamp(min=0)
        return (q - q.amax(-1, keepdim=True)).exp(), (k - excess).exp()


def _exponents(x: Tensor, directions: Tensor) -> Tensor:
    x = x / x.shape[-1] ** 0.25
    return x @ directions.T - x.square().sum(-1, keepdim=True) / 2


def orthogonal_directions(width: int, count: int) -> Tensor:
    """(count, width): blocks of orthogonal rows with the lengths of rows of N(0, I)."""
    blocks = [_rotation(width) for _ in range(-(-count // width))]
    lengths = torch.randn(count, width).norm(dim=-1, keepdim=True)
    return torch.cat(blocks)[:count] * lengths


def _rotation(width: int) -> Tensor:
    """A uniformly distributed orthogonal matrix: QR alone prefers some signs."""
    q, r = torch.linalg.qr(torch.randn(width, width))
    return q * r.diagonal().sign()


@variant(
    "performer",
    equation="φ(Q)(φ(K)ᵀV) / φ(Q)Σφ(K), φ(x) = exp(Ωx-|x|²/2)",
    paper="Choromanski et al. 2021, arXiv:2009.14794",
    time=1,
    memory=1,
    positions=frozenset({"rotary"}),
)
def performer(shape: MixerShape) -> KernelAttention:
    return KernelAttention(shape, RandomFeatures(shape.head_width, count=2 * shape.head_width))
