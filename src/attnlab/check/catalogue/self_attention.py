"""Mistakes in `self_attention`: a wrong piece in the right place, or a right piece in the wrong place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.attention import pieces
from attnlab.check.catalogue.heads import MERGE, SPLIT, UNEVEN_SPLIT
from attnlab.check.catalogue.masks import APPLY, MASK
from attnlab.check.catalogue.mistake import Function, Mistake, unchanged
from attnlab.check.catalogue.scores import OUTPUTS, PAIRWISE, SCALED, SOFTMAX


@dataclass(frozen=True)
class Assembly:
    """`self_attention` assembled from exchangeable pieces, in the order of the exercise."""

    choose: Function = lambda Q, K, V: (Q, K, V)
    split_heads: Function = pieces.split_heads
    split_heads_qkv: Function | None = None
    """Where the three are not split alike; else `split_heads` on each."""
    pairwise_similarities: Function = pieces.pairwise_similarities
    attn_scaled: Function = pieces.attn_scaled
    make_causal_mask: Function = pieces.make_causal_mask
    use_mask: Callable[[bool], bool] = bool
    apply_causal_mask: Function = pieces.apply_causal_mask
    attn_softmax: Function = pieces.attn_softmax
    mask_weights: Function = lambda mask, A: A
    compute_outputs: Function = pieces.compute_outputs
    merge_heads: Function = pieces.merge_heads

    def __call__(self, Q: Tensor, K: Tensor, V: Tensor, n_heads: int = 1, causal: bool = True) -> Tensor:
        n_tok, n_embd = Q.shape[-2:]
        Q, K, V = self.choose(Q, K, V)
        if n_heads > 1:
            if self.split_heads_qkv:
                Q, K, V = self.split_heads_qkv(Q, K, V, n_heads)
            else:
                Q, K, V = (self.split_heads(x, n_heads) for x in (Q, K, V))
        A = self.attn_scaled(self.pairwise_similarities(Q, K), n_embd, n_heads)
        if masked := self.use_mask(causal):
            A = self.apply_causal_mask(self.make_causal_mask(n_tok), A)
        A = self.attn_softmax(A)
        if masked:
            A = self.mask_weights(self.make_causal_mask(n_tok), A)
        y = self.compute_outputs(A, V)
        return self.merge_heads(y) if n_heads > 1 else y


Changes = dict[str, Function]


def _unmasked(mask: Tensor, A: Tensor) -> Tensor:
    return A


# Mistakes that only self_attention itself can make: (key, advice, changes to the assembly).
COMPOSITION: tuple[tuple[str, str, Changes], ...] = (
    (
        "mask-after-softmax",
        "the mask is applied after the softmax: hidden tokens still count in the normaliser, so the rows "
        "no longer sum to one and the future leaks in. Set the scores to −∞ before the softmax.",
        {"apply_causal_mask": _unmasked, "mask_weights": lambda mask, A: torch.where(mask, A, 0.0)},
    ),
    (
        "mask-missing",
        "the causal mask is not applied: mask the scores when causal is True (the default).",
        {"use_mask": lambda causal: False},
    ),
    ("mask-always", "the causal mask is applied although causal is False.", {"use_mask": lambda causal: True}),
    ("mask-flag-inverted", "the flag is inverted: mask when causal is True.", {"use_mask": lambda causal: not causal}),
    (
        "heads-ignored",
        "n_heads is ignored: split Q, K and V into heads, attend in each, and merge.",
        {
            "split_heads": unchanged,
            "merge_heads": unchanged,
            "attn_scaled": lambda A, n_embd, n_heads: A / math.sqrt(n_embd),
        },
    ),
    (
        "heads-only-in-scale",
        "n_heads changes the scale but nothing is split: split Q, K and V, attend in each head, and merge.",
        {"split_heads": unchanged, "merge_heads": unchanged},
    ),
    (
        "split-and-merge-without-transpose",
        "heads are split and merged by a reshape alone, which mixes tokens into heads: transpose axes "
        "1 and 2 after the split's reshape and before the merge's.",
        {"split_heads": SPLIT[0].wrong, "merge_heads": MERGE[0].wrong},
    ),
    (
        "scale-after-softmax",
        "the scale is applied after the softmax: scale the scores before it.",
        {"attn_scaled": unchanged, "compute_outputs": lambda A, V: A @ V / math.sqrt(V.size(-1))},
    ),
    ("key-is-query", "Q is compared with itself: the scores are Q Kᵀ.", {"choose": lambda Q, K, V: (Q, Q, V)}),
    ("query-is-key", "K is compared with itself: the scores are Q Kᵀ.", {"choose": lambda Q, K, V: (K, K, V)}),
    ("value-is-key", "the outputs are sums of the keys: they are A' V.", {"choose": lambda Q, K, V: (Q, K, K)}),
    ("value-is-query", "the outputs are sums of the queries: they are A' V.", {"choose": lambda Q, K, V: (Q, K, Q)}),
    ("key-is-value", "Q is compared with V: the scores are Q Kᵀ.", {"choose": lambda Q, K, V: (Q, V, V)}),
    ("key-value-swapped", "K and V are swapped.", {"choose": lambda Q, K, V: (Q, V, K)}),
    ("all-values", "the values are used as Q and K: the scores are Q Kᵀ.", {"choose": lambda Q, K, V: (V, V, V)}),
)

# A right piece, used wrongly: the key of its mistake that gives the same numbers, then what is to be said instead.
USAGE: dict[str, tuple[str, str]] = {
    "query-key-order": (
        "query-key-order",
        "pairwise_similarities is right but gets K before Q: each row must belong to a query.",
    ),
    "scale-missing": ("scale-missing", "attn_scaled is right, but its result is not used."),
    "scale-full-width": (
        "scale-full-width",
        "attn_scaled is right but gets 1 for n_heads: the scale uses the full width.",
    ),
    "scale-heads-twice": (
        "scale-heads-twice",
        "attn_scaled is right but gets the width of one head: it divides by n_heads itself.",
    ),
    "scale-no-root": ("scaled-twice", "the scores are scaled twice: call attn_scaled once."),
    "softmax-over-queries": (
        "softmax-over-queries",
        "attn_softmax is right but gets the scores transposed: columns sum to one, not rows.",
    ),
    "softmax-missing": ("softmax-missing", "attn_softmax is right, but its result is not used."),
    "weights-transposed": (
        "weights-transposed",
        "compute_outputs is right but gets the weights transposed: row i belongs to output i.",
    ),
    "mask-transposed": (
        "mask-read-transposed",
        "make_causal_mask is right, but its mask is transposed before it is applied: use it as it is.",
    ),
    "mask-inverted": (
        "mask-read-inverted",
        "make_causal_mask is right, but its mask is inverted before it is applied: use it as it is.",
    ),
}

_PIECES = (*SCALED, *PAIRWISE, *SOFTMAX, *OUTPUTS, *MASK, *APPLY, *SPLIT, *UNEVEN_SPLIT, *MERGE)


@dataclass(frozen=True)
class WholeMistake:
    """A mistake in `self_attention`, and what it changes in the right assembly."""

    mistake: Mistake
    changes: Changes


WHOLE: tuple[WholeMistake, ...] = (
    *(
        WholeMistake(Mistake(key, advice, "self_attention", Assembly(**changes)), changes)
        for key, advice, changes in COMPOSITION
    ),
    *(
        WholeMistake(Mistake(m.key, m.advice, m.function, Assembly(**{m.function: m.wrong})), {m.function: m.wrong})
        for m in _PIECES
    ),
)
SELF_ATTENTION: tuple[Mistake, ...] = tuple(whole.mistake for whole in WHOLE)


def pairs_of_mistakes(mistakes: Sequence[WholeMistake]) -> Iterator[tuple[WholeMistake, WholeMistake, Function]]:
    """Two mistakes at once, in different pieces, and the assembly with both."""
    for first, second in itertools.combinations(mistakes, 2):
        if not first.changes.keys() & second.changes.keys():
            together: dict[str, Any] = first.changes | second.changes
            yield first, second, Assembly(**together)
