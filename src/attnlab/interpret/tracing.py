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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from attnlab.base.errors import UserError, unknown
from attnlab.interpret.asked_people import PARTS, AskedPerson, AskedRun, PeopleBatch, by_length, mean_by_part
from attnlab.interpret.recorder import edited, record
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
        if self.draws < 1 or self.window < 1 or self.noise <= 0:
            raise UserError("the noise must be above 0, and there must be at least one draw and a window of one layer.")


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
    cells = []
    for (site, layer), values in restored.items():
        effects = mean_by_part(people, [row - base for row, base in zip(values, corrupted, strict=True)])
        for part, name in enumerate(PARTS):
            of_part = tuple(value for row in effects if (value := row[part]) is not None)
            if of_part:
                cells.append(TracedCell(site, layer, name, Mean(of_part)))
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


Restored: TypeAlias = dict[tuple[str, int], list[Tensor]]
"""By site and layer, for each person the measure (T,) with each position restored."""


class _Tracer:
    """The passes over all people: clean, corrupted, and restored at every site, layer and position."""

    def __init__(self, model: GPT, people: Sequence[AskedPerson], targets: Tensor, options: TraceOptions) -> None:
        self.model, self.people, self.targets, self.options = model, people, targets, options
        self.layers = len(model.blocks)
        self.generator = torch.Generator().manual_seed(options.seed)
        names = torch.cat([torch.tensor(person.tokens[person.start : person.end]) for person in people])
        self.deviation = float(model.tokens(names).std()) * options.noise

    def run(self) -> tuple[Tensor, Tensor, Restored]:
        """The measure of each person (N,) in the clean and the corrupted run, and restored."""
        count, places = len(self.people), self._places()
        clean, corrupted = torch.zeros(count), torch.zeros(count)
        restored: Restored = {place: [torch.zeros(0)] * count for place in places}
        longest = max(len(person.tokens) for person in self.people)
        for batch in by_length(self.people, max(longest, TOKENS_AT_ONCE // longest)):
            flow = _CleanRun.of(self.model, batch)
            targets = self.targets[batch.rows]
            clean[batch.rows] = self._measure(flow.logits, targets)
            for _ in range(self.options.draws):
                start = self._corrupt(batch, flow)
                logits = restore(self.model, batch.tokens, start, {})
                corrupted[batch.rows] += self._measure(logits, targets) / self.options.draws
                for place in places:
                    values = self._restore_each_position(batch, flow, start, place, targets)
                    for row, value in zip(batch.rows, values / self.options.draws, strict=True):
                        known = restored[place][row]
                        restored[place][row] = known + value if len(known) else value
        return clean, corrupted, restored

    def _places(self) -> list[tuple[str, int]]:
        places: list[tuple[str, int]] = []
        for site in self.options.sites:
            places += [(site, EMBEDDINGS)] if site == "stream" else []
            places += [(site, layer) for layer in range(self.layers)]
        return places

    def _names(self, place: tuple[str, int]) -> list[str]:
        """The names of what is restored at a site and layer: with a window, in the layers around it."""
        site, layer = place
        if layer == EMBEDDINGS:
            return ["blocks.0.input"]
        before = (self.options.window - 1) // 2 if site != "stream" else 0
        last = layer - before + (self.options.window if site != "stream" else 1)
        return [f"blocks.{n}.{SITES[site]}" for n in range(max(0, layer - before), min(self.layers, last))]

    def _corrupt(self, batch: PeopleBatch, clean: _CleanRun) -> Tensor:
        """The vectors (B, T, C) that enter the first block, with the name made unreadable."""
        if self.options.corruption == "noise":
            noise = torch.randn(clean["blocks.0.input"].shape, generator=self.generator) * self.deviation
            return torch.where(batch.in_name[..., None], clean["blocks.0.input"] + noise, clean["blocks.0.input"])
        tokens = batch.tokens
        for row, person in zip(tokens, batch.people, strict=True):
            others = _others(person, self.people)
            other = others[int(torch.randint(len(others), (1,), generator=self.generator))]
            row[person.start : person.end] = torch.tensor(other.tokens[other.start : other.end])
        return record(self.model, tokens, names=["blocks.0.input"])["blocks.0.input"]

    def _restore_each_position(
        self, batch: PeopleBatch, clean: _CleanRun, start: Tensor, place: tuple[str, int], targets: Tensor
    ) -> Tensor:
        """The measure (B, T) with the clean value at each position in turn, all positions in one pass."""
        B, T = batch.tokens.shape
        one = torch.eye(T, dtype=torch.bool).repeat(B, 1)  # (B·T, T), row b·T + t restores position t
        every = partial(torch.repeat_interleave, repeats=T, dim=0)
        restorations = {name: (one, every(clean[name])) for name in self._names(place)}
        logits = restore(self.model, every(batch.tokens), every(start), restorations)
        return self._measure(logits, every(targets)).view(B, T)

    def _measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(R,) of logits (R, V): log p/(1 − p), or p from it."""
        chosen = logits.gather(1, targets[:, None])[:, 0]
        odds = chosen - logits.scatter(1, targets[:, None], float("-inf")).logsumexp(-1)
        return odds.sigmoid() if self.options.measure == "probability" else odds


@dataclass(frozen=True)
class _CleanRun:
    """What flows in the clean run of a batch, and its logits (B, V) after MASK."""

    tensors: Mapping[str, Tensor]
    logits: Tensor

    @classmethod
    def of(cls, model: GPT, batch: PeopleBatch) -> _CleanRun:
        names = ["blocks.0.input", *(f"blocks.*.{what}" for what in SITES.values())]
        wanted = torch.zeros_like(batch.tokens, dtype=torch.bool)
        wanted[:, -1] = True
        recording = record(model, batch.tokens, names=names, wanted=wanted)
        assert isinstance(recording.output, Tensor)
        return cls(recording.tensors, recording.output)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]


def restore(model: GPT, tokens: Tensor, start: Tensor, restorations: Mapping[str, tuple[Tensor, Tensor]]) -> Tensor:
    """Logits (R, V) after the last token of a run that begins with the vectors `start` (R, T, C).

    `restorations` has by name a mask (R, T) and values (R, T, C): where the mask is True, the values replace what
    flows there.
    """
    edits: dict[str, Callable[[Tensor], Tensor]] = {"blocks.0.input": lambda x: start}
    for name, (mask, values) in restorations.items():
        edits[name] = partial(_replaced, start if name == "blocks.0.input" else None, mask[..., None], values)
    wanted = torch.zeros_like(tokens, dtype=torch.bool)
    wanted[:, -1] = True
    with torch.no_grad(), edited(model, edits):
        logits: Tensor = model(tokens, wanted=wanted)
    return logits


def _replaced(start: Tensor | None, mask: Tensor, values: Tensor, x: Tensor) -> Tensor:
    return torch.where(mask, values, x if start is None else start)
