"""Mistakes in the causal mask and in the way it is applied."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attnlab.check.catalogue.mistake import Mistake, mistakes_in


def _ones(n_tok: int) -> Tensor:
    return torch.ones(n_tok, n_tok, dtype=torch.bool)


MASK = mistakes_in(
    "make_causal_mask",
    (
        "mask-transposed",
        "the mask is upper triangular, so tokens see the future and not the past: use torch.tril.",
        lambda n_tok: _ones(n_tok).triu(),
    ),
    (
        "mask-inverted",
        "the mask is inverted: one (True) marks the keys a token may see, zero those it may not.",
        lambda n_tok: _ones(n_tok).triu(1),
    ),
    (
        "mask-no-diagonal",
        "a token cannot see itself: the diagonal must be one too (torch.tril without an offset).",
        lambda n_tok: _ones(n_tok).tril(-1),
    ),
    (
        "mask-one-too-far",
        "every token sees the next one: nothing above the diagonal may be one (torch.tril without an offset).",
        lambda n_tok: _ones(n_tok).tril(1),
    ),
    ("mask-all-ones", "everything is allowed: take the lower triangle with torch.tril.", _ones),
    (
        "mask-diagonal-only",
        "each token sees itself only: everything below the diagonal is allowed too.",
        lambda n_tok: torch.eye(n_tok),
    ),
    (
        "mask-additive",
        "this mask contains 0 and −∞, to be added: use ones and zeros, and leave −∞ to apply_causal_mask.",
        lambda n_tok: torch.full((n_tok, n_tok), -math.inf).triu(1),
    ),
    (
        "mask-extra-axes",
        "the mask has extra axes: (n_tok, n_tok) is enough, it is broadcast over batch and heads.",
        lambda n_tok: _ones(n_tok).tril()[None],
    ),
    (
        "mask-extra-axes",
        "the mask has extra axes: (n_tok, n_tok) is enough, it is broadcast over batch and heads.",
        lambda n_tok: _ones(n_tok).tril()[None, None],
    ),
)

APPLY = mistakes_in(
    "apply_causal_mask",
    (
        "masked-with-zero",
        "hidden scores are set to 0 (or nearly), but exp(0) = 1 is not a small weight: set them to −∞.",
        lambda mask, A: torch.where(mask.bool(), A, 0.0),
    ),
    (
        "mask-read-inverted",
        "the mask is inverted when it is applied: −∞ goes where it is zero (False).",
        lambda mask, A: torch.where(mask.bool(), -math.inf, A),
    ),
    ("mask-ignored", "the scores are returned unmasked: is the masked tensor returned?", lambda mask, A: A),
    (
        "mask-read-transposed",
        "the mask is transposed before it is applied: use it as it is.",
        lambda mask, A: torch.where(mask.transpose(-2, -1).bool(), A, -math.inf),
    ),
    (
        "mask-added",
        "the mask of ones and zeros is added to the scores: replace the hidden ones by −∞ (torch.where).",
        lambda mask, A: A + mask,
    ),
    (
        "masked-with-plus-infinity",
        "hidden scores are set to +∞, which takes all the weight: set them to −∞.",
        lambda mask, A: torch.where(mask.bool(), A, math.inf),
    ),
    (
        "masked-and-softmaxed",
        "the softmax is applied here already: leave it to attn_softmax.",
        lambda mask, A: torch.where(mask.bool(), A, -math.inf).softmax(-1),
    ),
)

MASK_NAN = Mistake(
    "mask-nan",
    "0 · −∞ is not a number: choose with torch.where or masked_fill instead of multiplying by −∞.",
    "apply_causal_mask",
    lambda mask, A: A + (1 - mask.to(A.dtype)) * -math.inf,
)


def nan_follows_the_mask(mask: Tensor, answer: Tensor) -> bool:
    """Every visible score, or every hidden one, is NaN and no other: the trace of 0 · −∞."""
    visible, missing = (mask != 0).broadcast_to(answer.shape), answer.isnan()
    return bool(missing.any()) and (torch.equal(missing, visible) or torch.equal(missing, ~visible))
