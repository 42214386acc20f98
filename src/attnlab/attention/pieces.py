"""Scaled dot-product attention, one step per function, a line or two each.

The equations, for one head of size d = n_embd / n_heads:

    A  = Q Kᵀ / √d                     scores, one row per query, one column per key
    A  = A where j ≤ i, else −∞        causal: token i sees itself and the tokens before
    A' = softmax(A) along each row     weights
    O  = A' V                          each output is a weighted mean of the values

B is the batch, T the tokens, C the width, H the heads, D = C / H. Every step works on the last two axes
only, so it takes (B, T, C) as well as (B, H, T, D). These are the names and signatures of the course
notebook; `self_attention` equals `torch.nn.functional.multi_head_attention_forward` with identity
projections. For training, prefer the fused kernel: these store the whole (T, T) matrix.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnlab.attention.parts.projections import merge_heads, split_heads
from attnlab.base.errors import UserError

__all__ = [
    "apply_causal_mask",
    "attn_scaled",
    "attn_softmax",
    "compute_outputs",
    "init_qkv_proj",
    "make_causal_mask",
    "merge_heads",
    "pairwise_similarities",
    "self_attention",
    "split_heads",
    "split_heads_qkv",
]


def init_qkv_proj(n_embd: int) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    """W_Q, W_K, W_V: three separate maps with a bias, (B, T, C) → (B, T, C)."""
    return nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)


def pairwise_similarities(Q: Tensor, K: Tensor) -> Tensor:
    """A = Q Kᵀ, that is a_ij = q_i · k_j: (..., T, D), (..., T, D) → (..., T, T)."""
    return Q @ K.transpose(-2, -1)


def attn_scaled(A: Tensor, n_embd: int, n_heads: int) -> Tensor:
    """A / √(n_embd / n_heads): dot products of d unit-variance terms get variance one again."""
    return A / math.sqrt(n_embd / n_heads)


def attn_softmax(A: Tensor) -> Tensor:
    """a'_ij = exp(a_ij) / Σ_j exp(a_ij): each query's weights over the keys sum to one."""
    return A.softmax(dim=-1)


def compute_outputs(A: Tensor, V: Tensor) -> Tensor:
    """O = A' V, that is o_i = Σ_j a'_ij v_j: (..., T, T), (..., T, D) → (..., T, D)."""
    return A @ V


def make_causal_mask(n_tok: int) -> Tensor:
    """True where token i may look at token j, j ≤ i: lower triangular, (T, T)."""
    return torch.ones(n_tok, n_tok, dtype=torch.bool).tril()


def apply_causal_mask(mask: Tensor, A: Tensor) -> Tensor:
    """a_ij where the mask allows it, else −∞, which the softmax turns into an exact zero: (..., T, T)."""
    return A.masked_fill(mask.to(A.device) == 0, -math.inf)


def split_heads_qkv(Q: Tensor, K: Tensor, V: Tensor, n_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """`split_heads` for all three."""
    return split_heads(Q, n_heads), split_heads(K, n_heads), split_heads(V, n_heads)


def self_attention(Q: Tensor, K: Tensor, V: Tensor, n_heads: int = 1, causal: bool = True) -> Tensor:
    """softmax(Q Kᵀ / √d) V in each head, without an output projection: three (B, T, C) → (B, T, C)."""
    if not Q.shape == K.shape == V.shape:
        shapes = ", ".join(str(tuple(x.shape)) for x in (Q, K, V))
        raise UserError(f"expected Q, K and V of the same shape (B, T, C), got {shapes}.")
    n_tok, n_embd = Q.shape[-2:]
    if n_embd % n_heads:
        raise UserError(f"width {n_embd} cannot be split into {n_heads} heads: choose a divisor of {n_embd}.")
    Q, K, V = split_heads_qkv(Q, K, V, n_heads)  # (B, H, T, D)
    A = attn_scaled(pairwise_similarities(Q, K), n_embd, n_heads)  # (B, H, T, T)
    if causal:
        A = apply_causal_mask(make_causal_mask(n_tok), A)
    return merge_heads(compute_outputs(attn_softmax(A), V))  # (B, T, C)
