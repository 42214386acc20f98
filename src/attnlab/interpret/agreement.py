"""Do the weights of an attention tell where its output comes from? Compared with influence, row by row.

    outside      share of the influence that comes from keys whose weight is 0 in every head
    later        the part of it from keys after the query: a mask that does not hide the future
    correlation  Spearman's rank correlation of the mean weight over heads with influence, mean over rows

Weights miss what changes the queries, keys and normaliser, and how long the values are; so the two may differ without
any mistake. A share outside is different: the output depends on something that the picture of weights shows as unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

NOTICEABLE = 1e-4
"""Smaller shares are rounding."""
ALIKE = 0.7
FEWEST = 3
"""Keys that a row needs to have an order worth comparing."""


@dataclass(frozen=True)
class Agreement:
    """How far weights and influence of one attention agree; correlation is None where no row is long enough."""

    correlation: float | None
    outside: float
    later: float

    @property
    def sentence(self) -> str:
        """What a reader of the picture should know, in one sentence."""
        if self.later > NOTICEABLE:
            return f"influence from later tokens although the weights are 0: {self.later:.1%} of all influence."
        if self.outside > NOTICEABLE:
            return f"influence from tokens although their weights are 0: {self.outside:.1%} of all influence."
        if self.correlation is None:
            return "too few keys have a weight to compare their order with influence."
        how = "alike" if self.correlation >= ALIKE else "differently"
        return f"weights and influence order the tokens {how}: mean rank correlation {self.correlation:.2f}."


def compare(weights: Tensor, influence: Tensor) -> Agreement:
    """Weights (H, T, T) with influence (T, T)."""
    hidden = weights.abs().amax(0) == 0  # (T, T)
    total = float(influence.sum()) or 1.0
    later = hidden & torch.ones_like(hidden).triu(1)
    outside, from_later = (float(influence[cells].sum()) / total for cells in (hidden, later))
    return Agreement(_correlation(weights.mean(0), influence, ~hidden), outside, from_later)


def summary(agreements: Mapping[str, Agreement]) -> list[str]:
    """At most two sentences on all attentions of a model: what weights hide, and where the order differs most."""
    sentences = []
    leaking = {name: each for name, each in agreements.items() if each.outside > NOTICEABLE}
    if leaking:
        name, worst = max(leaking.items(), key=lambda item: item[1].outside)
        count = f"{len(leaking)} of {len(agreements)} attentions"
        sentences.append(f"{count} have {worst.sentence.rstrip('.')} in {name}.")
    known = {name: each.correlation for name, each in agreements.items() if each.correlation is not None}
    if known:
        name, lowest = min(known.items(), key=lambda item: item[1])
        if lowest >= ALIKE:
            sentences.append(f"weights and influence order the tokens alike: rank correlation at least {lowest:.2f}.")
        else:
            sentences.append(
                f"weights and influence order the tokens differently, most in {name}: rank correlation {lowest:.2f}."
            )
    return sentences


def _correlation(weights: Tensor, influence: Tensor, visible: Tensor) -> float | None:
    rows = []
    for row, other, seen in zip(weights, influence, visible, strict=True):
        if int(seen.sum()) >= FEWEST:
            rows.append(spearman(row[seen], other[seen]))
    return float(torch.stack(rows).mean()) if rows else None


def spearman(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's correlation of the ranks, equal numbers sharing their mean rank; 0 if one side is constant."""
    x, y = (_ranks(part) - (len(part) + 1) / 2 for part in (a, b))
    return (x @ y) / (x.norm() * y.norm()).clamp_min(1e-12)


def _ranks(values: Tensor) -> Tensor:
    """1 … n as float64."""
    below = (values[None, :] < values[:, None]).sum(1)
    equal = (values[None, :] == values[:, None]).sum(1)
    return below.double() + (equal.double() + 1) / 2
