"""Mistakes on the way from Q, K and V to outputs: scores, scale, softmax, weighted sum."""

from __future__ import annotations

import math

from attnlab.check.catalogue.mistake import mistakes_in, unchanged

PAIRWISE = mistakes_in(
    "pairwise_similarities",
    (
        "query-key-order",
        "the scores are transposed, K Qᵀ: each row must belong to a query, so compute Q Kᵀ.",
        lambda Q, K: K @ Q.transpose(-2, -1),
    ),
    ("no-transpose", "K is not transposed: swap its last two axes with K.transpose(-2, -1).", lambda Q, K: Q @ K),
    (
        "transpose-all-axes",
        "K.T reverses every axis, the batch too: swap the last two only with K.transpose(-2, -1).",
        lambda Q, K: Q @ K.permute(*reversed(range(K.dim()))),
    ),
    (
        "transpose-first-axes",
        "K.transpose(0, 1) swaps batch and tokens: swap the last two axes with K.transpose(-2, -1).",
        lambda Q, K: Q @ K.transpose(0, 1),
    ),
    (
        "transpose-middle-axes",
        "axes 1 and 2 are the last two only while there are no heads: use K.transpose(-2, -1).",
        lambda Q, K: Q @ K.transpose(1, 2),
    ),
    (
        "feature-products",
        "this is Qᵀ K, features against features: tokens against tokens is Q Kᵀ.",
        lambda Q, K: Q.transpose(-2, -1) @ K,
    ),
    ("elementwise", "Q * K multiplies entry by entry: a matrix product is Q @ Kᵀ.", lambda Q, K: Q * K),
    (
        "scaled-twice",
        "the scores are scaled here already: leave that to attn_scaled, or it happens twice.",
        lambda Q, K: Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1)),
    ),
)

SCALED = mistakes_in(
    "attn_scaled",
    (
        "scale-full-width",
        "the scale uses the full width: a head has n_embd / n_heads features, divide by the root of that.",
        lambda A, n_embd, n_heads: A / math.sqrt(n_embd),
    ),
    ("scale-missing", "the scores are not scaled: divide them by √(n_embd / n_heads).", unchanged),
    (
        "scale-no-root",
        "this divides by d = n_embd / n_heads itself: divide by its square root.",
        lambda A, n_embd, n_heads: A / (n_embd / n_heads),
    ),
    (
        "scale-multiplied",
        "the scores are multiplied by √(n_embd / n_heads): divide by it.",
        lambda A, n_embd, n_heads: A * math.sqrt(n_embd / n_heads),
    ),
    (
        "scale-full-width-no-root",
        "this divides by the full width n_embd: divide by √(n_embd / n_heads).",
        lambda A, n_embd, n_heads: A / n_embd,
    ),
    (
        "scale-heads-twice",
        "the width is divided by n_heads twice, or n_heads is outside the root: use √(n_embd / n_heads).",
        lambda A, n_embd, n_heads: A / (math.sqrt(n_embd) / n_heads),
    ),
    (
        "scale-heads-multiplied",
        "the root is taken of n_embd · n_heads: take it of n_embd / n_heads.",
        lambda A, n_embd, n_heads: A / math.sqrt(n_embd * n_heads),
    ),
    (
        "scale-integer-division",
        "the root is rounded to a whole number: use /, not //, and math.sqrt.",
        lambda A, n_embd, n_heads: A / math.isqrt(n_embd // n_heads),
    ),
    (
        "scale-by-tokens",
        "the scale uses the number of tokens: it is the root of the head's features, √(n_embd / n_heads).",
        lambda A, n_embd, n_heads: A / math.sqrt(A.size(-1)),
    ),
)

SOFTMAX = mistakes_in(
    "attn_softmax",
    (
        "softmax-over-queries",
        "the softmax runs over the queries (columns sum to one): it must run over the keys, dim=-1.",
        lambda A: A.softmax(-2),
    ),
    ("softmax-over-batch", "the softmax runs over the batch (dim=0): use dim=-1.", lambda A: A.softmax(0)),
    (
        "softmax-dim-1",
        "dim=1 is the queries, and the heads once there are heads: the keys are dim=-1.",
        lambda A: A.softmax(1),
    ),
    (
        "softmax-dim-2",
        "dim=2 is the keys only while there are no heads: count from the end, dim=-1.",
        lambda A: A.softmax(2),
    ),
    (
        "softmax-over-everything",
        "one softmax runs over the whole matrix: each row needs its own, dim=-1.",
        lambda A: A.flatten(-2).softmax(-1).view_as(A),
    ),
    ("softmax-missing", "no softmax is applied: the scores are returned unchanged.", unchanged),
    ("softmax-not-normalised", "exp is not divided by its sum over the keys.", lambda A: A.exp()),
    ("softmax-log", "this is the logarithm of the softmax: use softmax.", lambda A: A.log_softmax(-1)),
    (
        "softmax-no-exp",
        "the scores are divided by their sum without exp: use softmax.",
        lambda A: A / A.sum(-1, keepdim=True),
    ),
    ("softmax-sigmoid", "this is a sigmoid: use softmax with dim=-1.", lambda A: A.sigmoid()),
)

OUTPUTS = mistakes_in(
    "compute_outputs",
    (
        "weights-transposed",
        "the weights are transposed, A'ᵀ V: row i of A' contains the weights of output i, so compute A' V.",
        lambda A, V: A.transpose(-2, -1) @ V,
    ),
    ("values-first", "this is V A': the weights come first, A' V.", lambda A, V: V @ A),
    (
        "values-transposed",
        "this is Vᵀ A': the weights come first and V is not transposed, A' V.",
        lambda A, V: V.transpose(-2, -1) @ A,
    ),
    (
        "values-transposed-second",
        "V must not be transposed: A' is (tokens, tokens) and V is (tokens, features), so A' V.",
        lambda A, V: A @ V.transpose(-2, -1),
    ),
    ("outputs-elementwise", "A' * V multiplies entry by entry: use A' @ V.", lambda A, V: A * V),
)
