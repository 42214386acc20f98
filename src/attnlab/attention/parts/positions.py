"""Positions: five ways to give a model the order of its tokens.

A scheme acts in one of two places, so there are two small interfaces:

`Embedding`   on the token's vector before the first layer: x_t + p_t      learned, sinusoidal
`Relative`    inside attention, on queries and keys or on their scores     rotary, alibi

`none` does nothing in either place; a causal model can still count the tokens it sees.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnlab.attention.registry import MixerShape, check_positions
from attnlab.base.errors import UserError


class Embedding(nn.Module):
    """Positions added to embeddings; this one adds nothing."""

    longest: int | None = None
    """The longest sequence it supports; None: no limit."""

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        """x (B, T, C) and positions (T,) or (B, T)."""
        return x


class Learned(Embedding):
    """p_t is a row of a trained table. There is nothing beyond its last row. Gehring et al. 2017."""

    def __init__(self, width: int, context: int) -> None:
        super().__init__()
        self.longest = context
        self.table = nn.Parameter(torch.zeros(context, width))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return x + self.table[at]


class Sinusoidal(Embedding):
    """p_{t,2i} = sin(t / 10000^{2i/C}), p_{t,2i+1} = cos(t / 10000^{2i/C}). Vaswani et al. 2017."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        angle = _angles(at, (self.width + 1) // 2)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
        return x + waves[..., : self.width].to(x.dtype)


class Relative(nn.Module):
    """Positions inside attention; this one changes nothing."""

    def rotate(self, vectors: Tensor, at: Tensor) -> Tensor:
        """Queries or keys (B, H, T, D) at positions (T,) or (B, T)."""
        return vectors

    def bias(self, queries_at: Tensor, keys_at: Tensor) -> Tensor | None:
        """Added to the scores (B, H, T, S), for positions (T,) or (B, T) of queries, (S,) of keys."""
        return None


class Rotary(Relative):
    """Rotate pair i of a query or key by t·θ_i, θ_i = 10000^{-2i/D}. Su et al. 2021.

    q_t·k_s then depends on the positions through t - s only.
    """

    def __init__(self, head_width: int) -> None:
        super().__init__()
        if head_width % 2:
            raise UserError(
                f"rotary positions rotate pairs of numbers, and the head width {head_width} is odd: "
                "choose width and heads so that width / heads is even."
            )
        self.pairs = head_width // 2

    def rotate(self, vectors: Tensor, at: Tensor) -> Tensor:
        angle = _angles(at, self.pairs)  # (T, D/2) or (B, T, D/2)
        if angle.dim() == 3:
            angle = angle[:, None]  # the same for all heads
        cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
        # The pairs are (first half, second half): the same rotation up to the order of the channels.
        first, second = vectors.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class Alibi(Relative):
    """Scores lose m_h·|t - s|, with m_h = 2^{-8h/H} for h = 1 … H. Press, Smith and Lewis 2022."""

    slopes: Tensor

    def __init__(self, heads: int) -> None:
        super().__init__()
        slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
        self.register_buffer("slopes", slopes, persistent=False)

    def bias(self, queries_at: Tensor, keys_at: Tensor) -> Tensor:
        distance = (queries_at[..., :, None] - keys_at).abs()  # (T, S) or (B, T, S)
        return -self.slopes[:, None, None] * distance.unsqueeze(-3)  # (H, T, S) or (B, H, T, S)


def _angles(at: Tensor, pairs: int) -> Tensor:
    """t·10000^{-i/pairs}: (..., pairs) for positions at (...)."""
    index = torch.arange(pairs, device=at.device, dtype=torch.float32)
    return at[..., None] * torch.exp(-math.log(10000.0) * index / pairs)


def embedding_positions(name: str, width: int, context: int) -> Embedding:
    """The part that acts on embeddings."""
    check_positions(name)
    if name == "learned":
        return Learned(width, context)
    return Sinusoidal(width) if name == "sinusoidal" else Embedding()


def relative_positions(shape: MixerShape) -> Relative:
    """The part that acts inside attention."""
    check_positions(shape.positions)
    if shape.positions == "rotary":
        return Rotary(shape.head_width)
    return Alibi(shape.heads) if shape.positions == "alibi" else Relative()
