"""The attention of a model on one text: who takes how much from whom, in every layer and head.

    maps = attention_maps(open_subject("runs/my-run"), "The cat sat.")
    maps.weights(0, 3)                    # (T, S), layer 0, head 3
    maps.attentions[0].influence.matrix   # (T, T), where it was computed
    maps.remarks                          # where weights and influence disagree, in a sentence or two

Weights come from one forward pass for all layers. Influence takes a backward pass per output and probe, so without
being asked for it is computed only for mixers that have no weights, and where it takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.interpret.agreement import Agreement, compare, summary
from attnlab.interpret.anatomy import Anatomy, AttentionSite, anatomy
from attnlab.interpret.influence import PROBES, Influence, influence
from attnlab.interpret.listening import Attended
from attnlab.interpret.recorder import record
from attnlab.interpret.subject import Reading, Subject

CHEAP = 1e10
"""Multiplications of all layers up to which influence is computed beside weights: some seconds on one core."""


@dataclass(frozen=True)
class Side:
    """The tokens on one side of an attention: those that ask, or those that are looked at."""

    tokens: list[str]
    special: list[bool]


@dataclass(frozen=True)
class AttentionMap:
    """One attention on one text. For self-attention the two sides are the same."""

    name: str
    layer: int
    heads: int
    queries: Side
    keys: Side
    attended: Attended | None
    """A batch of one; None for a mixer that computes no weights."""
    influence: Influence | None = None
    agreement: Agreement | None = None

    @property
    def weights(self) -> Tensor | None:
        """(H, T, S)."""
        return None if self.attended is None else self.attended.weights[0]

    def head(self, number: int) -> Tensor:
        """(T, S); raises for a head that is not there, or a mixer without weights."""
        if self.weights is None:
            raise UserError(f"{self.name} computes no weights, so it has no heads to show: look at its influence.")
        if not 0 <= number < len(self.weights):
            last = len(self.weights) - 1
            raise UserError(f"head {self.layer}.{number} is not there: layer {self.layer} has heads 0 to {last}.")
        return self.weights[number]


@dataclass(frozen=True)
class AttentionMaps:
    """All of them, or that of one layer, in the order in which they are passed."""

    model: str
    reading: Reading
    attentions: list[AttentionMap]

    @property
    def remarks(self) -> list[str]:
        """Where weights and influence disagree, over all attentions."""
        return summary({each.name: each.agreement for each in self.attentions if each.agreement is not None})

    def weights(self, layer: int | str, head: int) -> Tensor:
        """(T, S) of one head of a layer, which is given by number or name."""
        return self.attentions[self.place(layer)].head(head)

    def place(self, layer: int | str) -> int:
        """Where in `attentions` a layer is."""
        for n, each in enumerate(self.attentions):
            if str(layer) in (str(each.layer), each.name, each.name.rpartition(".")[0]):
                return n
        there = ", ".join(f"{each.layer} ({each.name})" for each in self.attentions)
        raise UserError(f"layer {layer} is not there: expected one of {there}.")

    def as_dict(self) -> dict[str, object]:
        """Plain lists and numbers; those of 32 bits are exact as Python's floats."""
        return {
            "model": self.model,
            "text": self.reading.text,
            "notes": self.reading.notes,
            "remarks": self.remarks,
            "attentions": [_plain(each) for each in self.attentions],
        }

    def __repr__(self) -> str:
        return f"AttentionMaps({self.model!r}, {self.reading.text!r:.60}, {len(self.attentions)} attentions)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import maps_html

        return maps_html(self)


def attention_maps(
    subject: Subject,
    text: str,
    second: str | None = None,
    *,
    layer: int | str | None = None,
    influence: bool | None = None,
) -> AttentionMaps:
    """`layer`: only this one, by number or name. `influence`: of all, of none, or (None) as described above."""
    return with_influence(subject, weight_maps(subject, text, second, layer), influence)


def weight_maps(
    subject: Subject, text: str, second: str | None = None, layer: int | str | None = None
) -> AttentionMaps:
    """Weights and what led to them; influence can be added with `with_influence`."""
    return maps_of(subject, subject.read(text, second), layer)


@torch.no_grad()
def maps_of(subject: Subject, reading: Reading, layer: int | str | None = None) -> AttentionMaps:
    """The same, of a text that has been read: one forward pass."""
    parts = anatomy(subject.model)
    sites = parts.attentions if layer is None else (_site(parts, layer),)
    recording = record(subject.model, **reading.inputs, names=[f"{site.name}.weights" for site in sites])
    source = Side(reading.tokens, reading.special)
    target = Side(reading.target, reading.target_special) if reading.target else source
    maps = []
    for site in sites:
        queries = target if site.name.startswith("decoder.") else source
        keys = source if site.name.endswith(".cross") else queries
        attended = recording.attended.get(site.name)
        heads = site.heads if attended is None else attended.weights.shape[1]
        maps.append(AttentionMap(site.name, parts.attentions.index(site), heads, queries, keys, attended))
    return AttentionMaps(subject.name, reading, maps)


def with_influence(subject: Subject, maps: AttentionMaps, asked: bool | None = None) -> AttentionMaps:
    """The same maps, with influence where it was asked for, or (None) is needed or cheap."""
    wanted = _wanted(maps.attentions, asked)
    inputs = maps.reading.inputs
    completed = [_completed(subject, inputs, each) if each.name in wanted else each for each in maps.attentions]
    return replace(maps, attentions=completed)


def _site(parts: Anatomy, layer: int | str) -> AttentionSite:
    """By number, or by name: "decoder.blocks.0.cross", or "blocks.0" for its attention."""
    text = str(layer)
    return parts.layer(int(text)) if text.removeprefix("-").isdecimal() else parts.attention(text)


def _wanted(maps: list[AttentionMap], asked: bool | None) -> set[str]:
    """The names of the attentions whose influence is computed; cross attention has two inputs and no such matrix."""
    possible = [each for each in maps if each.queries is each.keys]
    without = {each.name for each in possible if each.attended is None}
    if asked is None:
        asked = sum(_cost(each.attended) for each in possible if each.attended is not None) <= CHEAP
        return {each.name for each in possible} if asked else without
    if without and not asked:
        raise UserError(f"{min(without)} computes no weights: influence is all there is to see, so do not turn it off.")
    return {each.name for each in possible} if asked else set()


def _cost(attended: Attended) -> float:
    """Multiplications of `influence`: per output and probe, back through the T × T weights and four projections."""
    _, heads, length, width = attended.heads.shape
    channels = heads * width
    return float(min(PROBES, channels) * length**2 * channels * (4 * channels + 2 * length))


def _completed(subject: Subject, inputs: Mapping[str, Tensor], attention: AttentionMap) -> AttentionMap:
    computed = influence(subject.model, inputs, attention.name)
    weights = attention.weights
    agreement = None if weights is None else compare(weights, computed.matrix)
    return replace(attention, influence=computed, agreement=agreement)


def _plain(attention: AttentionMap) -> dict[str, object]:
    weights, computed, agreement = attention.weights, attention.influence, attention.agreement
    return {
        "name": attention.name,
        "layer": attention.layer,
        "heads": attention.heads,
        "queries": attention.queries.tokens,
        "queries_special": attention.queries.special,
        "keys": attention.keys.tokens,
        "keys_special": attention.keys.special,
        "weights": None if weights is None else weights.tolist(),
        "influence": None if computed is None else computed.matrix.tolist(),
        "influence_exact": None if computed is None else computed.exact,
        "rank_correlation": None if agreement is None else agreement.correlation,
        "influence_where_weights_are_0": None if agreement is None else agreement.outside,
    }
