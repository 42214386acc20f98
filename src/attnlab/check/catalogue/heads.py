"""Mistakes in splitting the width into heads and joining them again."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attnlab.attention import pieces
from attnlab.check.catalogue.mistake import Function, mistakes_in, unchanged


def _reshape_only_split(Q: Tensor, n_heads: int) -> Tensor:
    B, T, C = Q.shape
    return Q.reshape(B, n_heads, T, C // n_heads)


def _interleaved_split(Q: Tensor, n_heads: int) -> Tensor:
    B, T, C = Q.shape
    return Q.reshape(B, T, C // n_heads, n_heads).permute(0, 3, 1, 2)


SPLIT = mistakes_in(
    "split_heads",
    (
        "split-without-transpose",
        "the heads are split by a reshape alone, which mixes tokens into heads: reshape to "
        "(B, n_tok, n_heads, n_embd_per_head), then transpose axes 1 and 2.",
        _reshape_only_split,
    ),
    (
        "split-not-transposed",
        "the head axis still comes after the tokens: transpose axes 1 and 2.",
        lambda Q, n_heads: Q.unflatten(-1, (n_heads, -1)),
    ),
    (
        "split-interleaved",
        "each head takes every n_heads-th feature: reshape to (..., n_heads, n_embd_per_head).",
        _interleaved_split,
    ),
    (
        "split-features-before-tokens",
        "the last two axes are swapped: tokens come before the head's features.",
        lambda Q, n_heads: pieces.split_heads(Q, n_heads).transpose(-2, -1),
    ),
    (
        "split-heads-first",
        "the head axis comes before the batch: it belongs second, (B, n_heads, n_tok, n_embd_per_head).",
        lambda Q, n_heads: torch.stack(Q.chunk(n_heads, -1)),
    ),
    ("split-ignored", "the tensor is returned unsplit: n_heads is not used.", unchanged),
)

MERGE = mistakes_in(
    "merge_heads",
    (
        "merge-without-transpose",
        "the heads are merged by a reshape alone, which mixes tokens: transpose axes 1 and 2 first.",
        lambda y: y.reshape(y.size(0), y.size(2), -1),
    ),
    (
        "merge-not-reshaped",
        "the heads are transposed but not joined: reshape to (B, n_tok, n_embd).",
        lambda y: y.transpose(1, 2),
    ),
    (
        "merge-interleaved",
        "the features of the heads are interleaved: join with the head axis before the features.",
        lambda y: y.permute(0, 2, 3, 1).flatten(-2),
    ),
    ("merge-averaged", "the heads are averaged: concatenate them instead.", lambda y: y.mean(1)),
    ("merge-summed", "the heads are summed: concatenate them instead.", lambda y: y.sum(1)),
    ("merge-ignored", "the heads are returned unmerged.", unchanged),
)


def _split_three(split: Function) -> Function:
    return lambda Q, K, V, n_heads: (split(Q, n_heads), split(K, n_heads), split(V, n_heads))


_right_split = _split_three(pieces.split_heads)
UNEVEN_SPLIT = mistakes_in(
    "split_heads_qkv",
    ("qkv-order", "K and V are returned in the wrong order.", lambda Q, K, V, h: _right_split(Q, V, K, h)),
    ("qkv-order", "Q and K are returned in the wrong order.", lambda Q, K, V, h: _right_split(K, Q, V, h)),
    ("qkv-repeated", "Q is returned three times.", lambda Q, K, V, h: _right_split(Q, Q, Q, h)),
    ("qkv-one-unsplit", "V is not split: split all three.", lambda Q, K, V, h: (*_right_split(Q, K, V, h)[:2], V)),
    (
        "qkv-one-unsplit",
        "K is not split: split all three.",
        lambda Q, K, V, h: _with_second(_right_split(Q, K, V, h), K),
    ),
    ("qkv-one-unsplit", "Q is not split: split all three.", lambda Q, K, V, h: (Q, *_right_split(Q, K, V, h)[1:])),
)
SPLIT_QKV = (*UNEVEN_SPLIT, *(replace(mistake, wrong=_split_three(mistake.wrong)) for mistake in SPLIT))


def _with_second(three: tuple[Tensor, Tensor, Tensor], second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return three[0], second, three[2]
