"""From tokens x (B, T, C) to queries (B, H, T, D), keys and values (B, G, T, D); G = H unless heads share."""

from __future__ import annotations

from torch import Tensor, nn

from attnlab.attention.parts.rms_norm import RMSNorm
from attnlab.attention.registry import MixerShape


def split_heads(Q: Tensor, n_heads: int) -> Tensor:
    """Give each head its own D consecutive features: (B, T, C) → (B, T, H, D) → (B, H, T, D)."""
    return Q.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(y: Tensor) -> Tensor:
    """The inverse of `split_heads`: (B, H, T, D) → (B, T, H, D) → (B, T, C)."""
    return y.transpose(-3, -2).flatten(-2)


class LinearProjections(nn.Module):
    """Q = xW_Q + b_Q and the same for K and V, in one matrix product.

    Fewer key heads G than query heads is grouped-query attention; G = 1 is multi-query attention.
    """

    def __init__(self, shape: MixerShape, key_heads: int | None = None) -> None:
        super().__init__()
        self.heads = shape.heads
        self.key_heads = key_heads or shape.heads
        self.sizes = [shape.width, self.key_heads * shape.head_width, self.key_heads * shape.head_width]
        self.qkv = nn.Linear(shape.width, sum(self.sizes), bias=shape.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = self.qkv(x).split(self.sizes, dim=-1)
        return (
            split_heads(queries, self.heads),
            split_heads(keys, self.key_heads),
            split_heads(values, self.key_heads),
        )


class QKNorm(nn.Module):
    """Queries and keys of root mean square 1, times a learned gain: bounded scores. Henry et al. 2020."""

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.queries = RMSNorm(head_width)
        self.keys = RMSNorm(head_width)

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return self.queries(queries), self.keys(keys)


class NoQKNorm(nn.Module):
    """Queries and keys unchanged."""

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return queries, keys


def qk_norm(shape: MixerShape) -> nn.Module:
    return QKNorm(shape.head_width) if shape.qk_norm else NoQKNorm()
