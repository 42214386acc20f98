"""How a weight came about, with numbers: the steps of an attention that can be followed by hand.

    s_tj = scale · q_t·k_j + bias_tj      where queries, keys and this rule give the model's own scores
    s_tj                                  as the mixer computed it, where its rule is another one
    p_tj = exp(s_tj) / Σ_i exp(s_ti)
    w_tj                                  equal to p_tj, unless something follows the softmax
    w_tj v_j                              what key j adds to the output of query t

A rule is shown only if it gives the weights that the model used.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.interpret.listening import Attended

CLOSE = 1e-4
"""Largest difference between recomputed and recorded scores or weights."""


@dataclass(frozen=True)
class Steps:
    """The numbers of the steps of one attention on one text; those that are None do not exist or were not seen."""

    values: Tensor  # (H, S, D)
    queries: Tensor | None = None  # (H, T, D)
    keys: Tensor | None = None  # (H, S, D)
    scale: float | None = None
    bias: Tensor | None = None  # (1 or H, T, S)
    scores: Tensor | None = None  # (H, T, S), only where queries and keys do not give them


def steps_of(attended: Attended) -> Steps:
    """The steps of a batch of one."""
    values = attended.values[0]
    if attended.queries is None or attended.keys is None:
        return Steps(values, scores=_own_scores(attended))
    queries, keys = attended.queries[0], attended.keys[0]
    if len(keys) != len(queries):  # groups of heads share keys
        keys = keys.repeat_interleave(len(queries) // len(keys), 0)
    products = queries @ keys.transpose(-1, -2)  # (H, T, S)
    if attended.scores is None:
        bias = None if attended.bias is None else _bias(attended.bias, products)
        scores = products * attended.scale
        if _near((scores if bias is None else scores + bias).softmax(-1), attended.weights[0]):
            return Steps(values, queries, keys, attended.scale, bias)
        return Steps(values)
    scores = attended.scores[0].expand_as(products)
    scale, seen = queries.shape[-1] ** -0.5, scores.isfinite()
    if not _near((products * scale)[seen], scores[seen]):
        return Steps(values, scores=scores)
    mask = torch.zeros_like(products).masked_fill_(~seen, float("-inf"))
    return Steps(values, queries, keys, scale, None if seen.all() else _one_for_all(mask))


def _own_scores(attended: Attended) -> Tensor | None:
    return None if attended.scores is None else attended.scores[0].expand_as(attended.weights[0])


def _bias(bias: Tensor, products: Tensor) -> Tensor:
    """Whatever broadcasts to (1, H, T, S), as (1 or H, T, S)."""
    return _one_for_all(bias.expand(1, *products.shape)[0])


def _one_for_all(bias: Tensor) -> Tensor:
    """(1, T, S) where all heads have the same."""
    return bias[:1] if torch.equal(bias, bias[:1].expand_as(bias)) else bias


def _near(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a, b, atol=CLOSE, rtol=CLOSE))
