"""Causal tracing: where in a model the name in "Where was X born?" becomes the answer. Meng et al. 2022.

    clean       the question as it is                            P(right answer) is high
    corrupted   the name is made unreadable                      P drops
    restored    corrupted, but one vector has its clean value    P rises again where that vector carries the answer

    effect(site, layer, position) = P_restored − P_corrupted

P is the probability of the first token of the answer, after MASK. The name is made unreadable by Gaussian noise on the
embeddings of its tokens, or exchanged for the name of another person with as many tokens and another answer; both
several times, and P is the mean over the draws. Intervals are over people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnlab.base.errors import UserError, unknown
from attnlab.interpret.asked_people import (
    PARTS,
    AskedPerson,
    AskedRun,
    PeopleBatch,
    by_length,
    mean_by_part,
    without_nan,
)
from attnlab.interpret.recorder import Recording, edited, record
from attnlab.models.gpt import GPT
from attnlab.stats.intervals import Mean

CORRUPTIONS = ("noise", "exchange")
MEASURES = ("probability", "logit")
TARGETS = ("right", "own")
SITES = {"stream": "output", "attention": "attention.output", "mlp": "mlp.output"}
EMBEDDINGS = -1
"""The layer before the first: the residual stream that enters block 0."""
TOKENS_AT_ONCE = 16_384


@dataclass(frozen=True)
class TraceOptions:
    corruption: str = "noise"
    noise: float = 3.0
    """Standard deviations of the embeddings of the names' tokens."""
    draws: int = 4
    sites: tuple[str, ...] = tuple(SITES)
    window: int = 1
    """Layers restored together around a layer, for attention and mlp: in a deep model one of them does little."""
    measure: str = "probability"
    """"logit" is log p/(1 − p): the logit of the answer against all other tokens together."""
    target: str = "right"
    """"own": the probability of the model's own answer, right or not."""
    only_right: bool = False
    """Leave out the people about whom the model is wrong."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("corruption", self.corruption, CORRUPTIONS),
            ("measure", self.measure, MEASURES),
            ("target", self.target, TARGETS),
            *(("site", site, tuple(SITES)) for site in self.sites),
        ):
            if value not in choices:
                raise UserError(unknown(name, value, choices))
        if self.draws < 1 or self.window < 1 or not 0 < self.noise < math.inf:
            raise UserError("the noise must be a number above 0, and draws and the window at least 1.")


@dataclass(frozen=True)
class TracedCell:
    """The effect of restoring one site, layer and part of the question, over the people whose question has it."""

    site: str
    layer: int
    part: str
    effect: Mean


@dataclass(frozen=True)
class Trace:
    run: str
    source: str
    options: TraceOptions
    people: int
    right: int
    """Of those asked, before any were left out."""
    asked: int
    clean: Mean
    corrupted: Mean
    cells: list[TracedCell]
    notes: list[str]

    def cell(self, site: str, layer: int, part: str) -> TracedCell:
        return next(c for c in self.cells if (c.site, c.layer, c.part) == (site, layer, part))

    def largest(self, site: str) -> TracedCell:
        return max((cell for cell in self.cells if cell.site == site), key=lambda cell: cell.effect.mean)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, without the single people."""
        return {
            "run": self.run,
            "source": self.source,
            "options": vars(self.options) | {"sites": list(self.options.sites)},
            "asked": self.asked,
            "right": self.right,
            "people": self.people,
            "clean": plain_mean(self.clean),
            "corrupted": plain_mean(self.corrupted),
            "cells": [
                {"site": c.site, "layer": layer_name(c.layer), "part": c.part} | plain_mean(c.effect)
                for c in self.cells
            ],
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        return f"Trace({self.run!r}, {self.people} people)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import trace_html

        return trace_html(self)


def layer_name(layer: int) -> str:
    return "embeddings" if layer == EMBEDDINGS else str(layer)


def plain_mean(mean: Mean) -> dict[str, Any]:
    return {"mean": mean.mean, "interval": mean.interval, "people": mean.count}


@torch.no_grad()
def trace(asked: AskedRun, options: TraceOptions | None = None) -> Trace:
    """Corrupt the name, restore every site, layer and position in turn, and average over people."""
    options = options or TraceOptions()
    model, notes = asked.model.eval(), list(asked.notes)
    own = own_answers(model, asked.people)
    right = [person.target == token for person, token in zip(asked.people, own, strict=True)]
    kept = [n for n, is_right in enumerate(right) if is_right or not options.only_right]
    people = [asked.people[n] for n in kept]
    targets = torch.tensor([own[n] if options.target == "own" else asked.people[n].target for n in kept])
    if options.corruption == "exchange":
        people, targets = _exchangeable(people, targets, notes)
    if not people:
        raise UserError(f"{asked.name} answers none of the {len(asked.people)} questions right: trace its own answers.")
    tracer = _Tracer(model, people, targets, options)
    clean, corrupted, restored = tracer.run()
    effects = mean_by_part(people, [rows - base for rows, base in zip(restored, corrupted, strict=True)])
    cells = [
        TracedCell(site, layer, PARTS[part], Mean(values))
        for place, (site, layer) in enumerate(tracer.places)
        for part in range(len(PARTS))
        if (values := without_nan(effects[:, place, part]))
    ]
    means = Mean(tuple(clean.tolist())), Mean(tuple(corrupted.tolist()))
    return Trace(asked.name, asked.source, options, len(people), sum(right), len(right), *means, cells, notes)


def own_answers(model: GPT, people: Sequence[AskedPerson]) -> list[int]:
    """The most probable first token of each answer."""
    tokens = [0] * len(people)
    for batch in by_length(people, TOKENS_AT_ONCE):
        for row, token in zip(batch.rows, model(batch.tokens)[:, -1].argmax(-1).tolist(), strict=True):
            tokens[row] = token
    return tokens


def _exchangeable(people: list[AskedPerson], targets: Tensor, notes: list[str]) -> tuple[list[AskedPerson], Tensor]:
    """The people for whom there is another with a name of the same length and another answer."""
    kept = [n for n, person in enumerate(people) if _others(person, people)]
    if not kept:
        raise UserError("no two names have the same number of tokens and different answers: corrupt by noise instead.")
    if len(kept) < len(people):
        notes.append(f"{len(people) - len(kept)} people were left out: no other name has as many tokens as theirs.")
    return [people[n] for n in kept], targets[kept]


def _others(person: AskedPerson, people: Sequence[AskedPerson]) -> list[AskedPerson]:
    length = person.end - person.start
    return [other for other in people if other.end - other.start == length and other.target != person.target]


class _Tracer:
    """The passes over all people: clean, corrupted, and restored at every site, layer and position."""

    def __init__(self, model: GPT, people: Sequence[AskedPerson], targets: Tensor, options: TraceOptions) -> None:
        self.model, self.people, self.targets, self.options = model, people, targets, options
        self.layers = len(model.blocks)
        first = {site: EMBEDDINGS if site == "stream" else 0 for site in options.sites}
        self.places = [(site, layer) for site in options.sites for layer in range(first[site], self.layers)]
        self.generator = torch.Generator().manual_seed(options.seed)
        names = torch.cat([torch.tensor(person.tokens[person.start : person.end]) for person in people])
        self.deviation = float(model.tokens(names).std()) * options.noise

    def run(self) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The measure of each person (N,) in the clean and the corrupted run, and (places, T) per person restored."""
        count, draws = len(self.people), self.options.draws
        clean, corrupted = torch.zeros(count), torch.zeros(count)
        restored = [torch.zeros(len(self.places), len(person.tokens)) for person in self.people]
        longest = max(len(person.tokens) for person in self.people)
        for batch in by_length(self.people, TOKENS_AT_ONCE // longest):
            targets = self.targets[batch.rows]
            flow = record(self.model, batch.tokens, names=["blocks.0.input", "blocks.*.output"])
            clean[batch.rows] = self._measure(logits_after(self.model, flow["blocks.0.input"]), targets)
            for _ in range(draws):
                start = self._corrupt(batch, flow["blocks.0.input"])
                streams: list[Tensor] = []
                corrupted[batch.rows] += self._measure(logits_after(self.model, start, seen=streams), targets) / draws
                for number, place in enumerate(self.places):
                    values = self._restore_each_position(flow, streams, place, targets) / draws  # (B, T)
                    for row, value in zip(batch.rows, values, strict=True):
                        restored[row][number] += value
        return clean, corrupted, restored

    def _corrupt(self, batch: PeopleBatch, clean: Tensor) -> Tensor:
        """The vectors (B, T, C) that enter the first block, with the name made unreadable."""
        if self.options.corruption == "noise":
            noise = torch.randn(clean.shape, generator=self.generator) * self.deviation
            return torch.where(batch.in_name[..., None], clean + noise, clean)
        tokens = batch.tokens
        for row, person in zip(tokens, batch.people, strict=True):
            others = _others(person, self.people)
            other = others[int(torch.randint(len(others), (1,), generator=self.generator))]
            row[person.start : person.end] = torch.tensor(other.tokens[other.start : other.end])
        return record(self.model, tokens, names=["blocks.0.input"])["blocks.0.input"]

    def _restore_each_position(
        self, clean: Recording, streams: Sequence[Tensor], place: tuple[str, int], targets: Tensor
    ) -> Tensor:
        """The measure (B, T) with the clean value at each position in turn, all positions in one pass.

        The pass begins with the block that is restored; before it everything is as in the corrupted run, whose
        `streams` enter block 0, block 1, …, and leave the last.
        """
        site, layer = place
        B, T, _ = streams[0].shape
        every = partial(torch.repeat_interleave, repeats=T, dim=0)
        one = torch.eye(T, dtype=torch.bool).repeat(B, 1)  # (B·T, T), row b·T + t restores position t
        if site == "stream":
            name = "blocks.0.input" if layer == EMBEDDINGS else f"blocks.{layer}.output"
            start = torch.where(one[..., None], every(clean[name]), every(streams[layer + 1]))
            logits = logits_after(self.model, start, layer + 1)
        else:
            before = (self.options.window - 1) // 2
            first, end = max(0, layer - before), min(self.layers, layer - before + self.options.window)
            names = [f"blocks.{n}.{SITES[site]}" for n in range(first, end)]
            restorations = {name: (one, every(clean[name])) for name in names}
            logits = logits_after(self.model, every(streams[first]), first, restorations)
        return self._measure(logits, every(targets)).view(B, T)

    def _measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(R,) of logits (R, V): log p/(1 − p), or p from it."""
        chosen = logits.gather(1, targets[:, None])[:, 0]
        odds = chosen - logits.scatter(1, targets[:, None], float("-inf")).logsumexp(-1)
        return odds.sigmoid() if self.options.measure == "probability" else odds


@torch.no_grad()
def logits_after(
    model: GPT,
    stream: Tensor,
    first: int = 0,
    restorations: Mapping[str, tuple[Tensor, Tensor]] | None = None,
    seen: list[Tensor] | None = None,
) -> Tensor:
    """Logits (R, V) at the last position, if the vectors `stream` (R, T, C) enter block `first`.

    `restorations` has by name a mask (R, T) and values (R, T, C): where the mask is True, the values replace what
    flows there. `seen` gets the streams between the blocks, the given one first.
    """
    edits = {name: partial(_replaced, mask[..., None], values) for name, (mask, values) in (restorations or {}).items()}
    streams = [stream]
    with edited(model, edits):
        for block in model.blocks[first:]:
            streams.append(block(streams[-1], None, None))
    if seen is not None:
        seen += streams
    logits: Tensor = model.head(model.norm(streams[-1][:, -1]))
    return logits


def _replaced(mask: Tensor, values: Tensor, x: Tensor) -> Tensor:
    return torch.where(mask, values, x)
