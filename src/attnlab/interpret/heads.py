"""Name the heads: how much of its attention each head spends in the way of a known kind.

A kind is a pattern M of pairs of a query t and a key s. The score of a head with weights A is

    score = mean over t ∈ R of Σ_s M[t, s] · A[t, s]

where R are the tokens for which the pattern has a key and leaves another one visible; marks such as [CLS] are keys but
not in R. A head that does nothing else scores 1. Chance is what equal weights on all visible keys would give.

    previous     s = t - 1
    first        s = 0                                   an attention sink; [CLS] in an encoder
    duplicate    x_s = x_t, s < t                        s ≠ t in a bidirectional model
    induction    x_{s-1} = x_t, s ≤ t                    after an earlier occurrence of the same token
    separator    x_s is punctuation, the end of a line or a mark after the text; x_t is none of these
    local        |t - s| ≤ 3

On L random tokens written twice, the duplicate of t is at t - L and induction looks at t - L + 1; R is the second copy.
That is the prefix-matching score of Olsson et al. 2022 (arXiv:2209.11895) with two copies. The patterns of previous,
duplicate and induction are those of TransformerLens' `detect_head`, which divides by all T rows: its score with the
error measure "mul" is ours times |R|/T. Separator and local heads: Clark et al. 2019 (arXiv:1906.04341).

Induction is not defined for a bidirectional model: a token sees the one that follows it and need not look for it. Of an
encoder-decoder, the encoder is scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.interpret.anatomy import anatomy
from attnlab.interpret.passages import Passages, passages_of, repeated_random
from attnlab.interpret.recorder import record
from attnlab.interpret.subject import Subject
from attnlab.stats.intervals import Mean

KINDS = ("previous", "first", "duplicate", "induction", "separator", "local")
NEAR = 3  # positions a local head looks at on either side
AT_ONCE = 4096  # tokens per forward pass
DRAWS = 10

Head = tuple[int, int]
"""Layer and head, counted from 0."""


@dataclass(frozen=True)
class KindScores:
    """The scores of all heads for one kind, each a mean over draws."""

    kind: str
    source: str
    """"random tokens" or "text"."""
    chance: float
    heads: dict[Head, Mean]

    def strongest(self, count: int = 3) -> list[tuple[Head, Mean]]:
        return sorted(self.heads.items(), key=lambda item: -item[1].mean)[:count]


@dataclass(frozen=True)
class HeadReport:
    """The scores of a model's heads."""

    name: str
    causal: bool
    draws: dict[str, tuple[int, int]]
    """By source: the number of sequences and the tokens in each."""
    kinds: list[KindScores]
    notes: list[str] = field(default_factory=list)

    def scores(self, kind: str, source: str = "random tokens") -> KindScores:
        for scores in self.kinds:
            if (scores.kind, scores.source) == (kind, source):
                return scores
        raise UserError(f"{kind} heads were not scored on {source}.")

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per head, kind and source."""
        return [
            {
                "kind": scores.kind,
                "source": scores.source,
                "layer": layer,
                "head": head,
                "score": mean.mean,
                "interval": mean.interval,
                "draws": mean.count,
                "chance": scores.chance,
            }
            for scores in self.kinds
            for (layer, head), mean in scores.heads.items()
        ]

    def __repr__(self) -> str:
        return f"HeadReport({self.name!r}, {len(self.kinds)} kinds)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import heads_html

        return heads_html(self)


def score_heads(
    subject: Subject, text: str | None = None, draws: int = DRAWS, length: int | None = None, seed: int = 0
) -> HeadReport:
    """Score every head on random tokens written twice and, if one is given, on a text."""
    if draws < 1:
        raise UserError(f"--draws must be at least 1, got {draws}.")
    sources = [repeated_random(subject, length, draws, seed)]
    if text is not None:
        sources.append(passages_of(subject, text, length, draws))
    notes = [note for passages in sources for note in passages.notes]
    if not subject.causal:
        notes.append("induction is not defined for a bidirectional model, in which a token sees the one that follows.")
    if text is None:
        notes.append("separator heads are scored on a text only: none was given.")
    return HeadReport(
        subject.name,
        subject.causal,
        {passages.source: (len(passages), passages.ids.shape[1]) for passages in sources},
        [scores for passages in sources for scores in score_passages(subject, passages)],
        notes,
    )


def score_passages(subject: Subject, passages: Passages) -> list[KindScores]:
    """The scores on these sequences, in few forward passes."""
    rows = max(1, AT_ONCE // passages.ids.shape[1])
    values: dict[str, dict[Head, list[float]]] = {}
    chances: dict[str, list[float]] = {}
    for start in range(0, len(passages), rows):
        part = passages.part(start, start + rows)
        weights = attention_weights(subject, part)
        for kind, pattern, counted in patterns(part, subject.causal):
            chances.setdefault(kind, []).extend(_known(chance(pattern, counted, subject.causal)))
            of_heads = values.setdefault(kind, {})
            for layer, of_layer in weights.items():
                for head, scores in enumerate(score(of_layer, pattern, counted).T):  # (B,)
                    of_heads.setdefault((layer, head), []).extend(_known(scores))
    return [
        KindScores(kind, passages.source, Mean(tuple(chances[kind])).mean, heads)
        for kind in values
        if (heads := {head: Mean(tuple(scores)) for head, scores in values[kind].items() if scores})
    ]


@torch.no_grad()
def attention_weights(subject: Subject, passages: Passages) -> dict[int, Tensor]:
    """By layer: (B, H, T, T). Raises if the model has none."""
    names = ["blocks.*.attention.weights", "encoder.blocks.*.attention.weights"]
    recording = record(subject.model, names=names, **passages.inputs)
    T = passages.ids.shape[1]
    sites = [site for site in anatomy(subject.model).attentions if not site.name.startswith("decoder.")]
    found = {
        layer: weights
        for layer, site in enumerate(sites)
        if (weights := recording.tensors.get(f"{site.name}.weights")) is not None and weights.shape[-2:] == (T, T)
    }
    if not found:
        mixer = type(sites[0].module).__name__
        raise UserError(
            f"{subject.name}: its attention ({mixer}) has no weights of one token on another, so its heads cannot be "
            "scored: 'attnlab inspect' shows the influence of one token on another instead."
        )
    return found


def patterns(passages: Passages, causal: bool) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Every kind that is defined: its name, its pattern (B, T, S), and the tokens R (B, T) that count."""
    ids = passages.ids
    at = torch.arange(ids.shape[1])
    apart = at[:, None] - at[None, :]  # (T, S): t - s
    visible = apart >= 0 if causal else torch.ones_like(apart, dtype=torch.bool)
    same = ids[:, :, None] == ids[:, None, :]  # (B, T, S)
    ends = passages.separators
    found = {
        "previous": apart == 1,
        "first": (at == 0) & (at[:, None] > 0),
        "duplicate": same & ((apart > 0) if causal else (apart != 0)),
        "separator": ends[:, None, :] & ~ends[:, :, None] & visible,
        "local": (apart.abs() <= NEAR) & visible,
    }
    if causal:
        after_same = torch.zeros_like(same)
        after_same[:, :, 1:] = same[:, :, :-1]
        found["induction"] = after_same & visible
    if passages.source != "text":
        del found["separator"]
    for kind in KINDS:
        if kind in found:
            pattern = found[kind].expand(same.shape)
            others = (visible & ~pattern).any(-1)
            yield kind, pattern, pattern.any(-1) & others & ~passages.special


def score(weights: Tensor, pattern: Tensor, counted: Tensor) -> Tensor:
    """(B, H): the mean over the counted tokens (B, T) of the weights (B, H, T, S) in the pattern (B, T, S).

    NaN for a sequence in which no token counts.
    """
    spent = (weights.double() * pattern[:, None]).sum(-1)  # (B, H, T)
    return (spent * counted[:, None]).sum(-1) / counted.sum(-1)[:, None]


def chance(pattern: Tensor, counted: Tensor, causal: bool) -> Tensor:
    """(B,): the score of equal weights on all keys that a token can see."""
    T = pattern.shape[-1]
    equal = torch.ones(T, T, dtype=torch.float64)
    equal = equal.tril() if causal else equal
    return score((equal / equal.sum(-1, keepdim=True)).expand(len(pattern), 1, T, T), pattern, counted)[:, 0]


def _known(values: Tensor) -> list[float]:
    return [value for value in values.tolist() if not math.isnan(value)]
