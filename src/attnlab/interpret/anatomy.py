"""Where the parts of a model are: its blocks, and in each the attention and the MLP, under names of our own.

    blocks.0                    a block of a GPT or of an encoder
    blocks.0.attention          its attention (or any other mixer)
    decoder.blocks.1.cross      the cross attention of an encoder-decoder

Models of the lab and of `transformers` call these parts differently; the table PLACES has the patterns of both. A
model with a wrapper around it (a classifier, an adapter) is searched as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import nn

from attnlab.base.errors import UserError


@dataclass(frozen=True)
class Place:
    """How one family names its parts: a block, and inside it attention, the projection after it, and the MLP."""

    block: str
    """A pattern with the group `number` and, for encoder-decoders, `side`."""
    attention: str
    output: str
    """The projection of the merged heads, inside the attention or beside it; `|` between two possible names. A
    person's own mixer (`inner`) has one if it calls a linear layer `output`, as the file to start from does."""
    mlp: str
    """The part whose output is added to the residual stream."""
    name: str = "attention"


PLACES = (
    Place(r"(.*\.|)blocks\.(?P<number>\d+)", "mixer", "mixer.output|mixer.inner.output", "mlp"),  # the lab's GPT
    Place(r"(.*\.|)layers\.(?P<number>\d+)", "mixer", "mixer.output|mixer.inner.output", "mlp"),  # the lab's BERT
    Place(r"(.*\.|)layer\.(?P<number>\d+)", "attention.self", "attention.output.dense", "output.dense"),  # BERT
    Place(r"(.*\.|)layer\.(?P<number>\d+)", "attention.attn", "attention.attn.o", "output.dense"),  # MPNet
    Place(r"(.*\.|)layer\.(?P<number>\d+)", "attention", "attention.out_lin", "ffn"),  # DistilBERT
    Place(r"(.*\.|)h\.(?P<number>\d+)", "attn", "attn.c_proj", "mlp"),  # GPT-2
    Place(
        r"(.*\.|)(?P<side>encoder|decoder)\.block\.(?P<number>\d+)",
        "layer.0.SelfAttention",
        "layer.0.SelfAttention.o",
        "layer.-1.DenseReluDense",
    ),  # T5
    Place(
        r"(.*\.|)(?P<side>decoder)\.block\.(?P<number>\d+)",
        "layer.1.EncDecAttention",
        "layer.1.EncDecAttention.o",
        "layer.-1.DenseReluDense",
        "cross",
    ),
)
HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "heads")


@dataclass(frozen=True)
class AttentionSite:
    """One attention of a model: a mixer, its output projection if it has one, and how many heads share it."""

    name: str
    block: str
    """The name of its block, "blocks.0"."""
    module: nn.Module
    output: nn.Module | None
    heads: int


@dataclass(frozen=True)
class BlockSite:
    """One block of a model."""

    name: str
    module: nn.Module
    mlp: nn.Module | None


@dataclass(frozen=True)
class Anatomy:
    """All blocks and attentions of a model, in the order in which they are passed."""

    blocks: tuple[BlockSite, ...]
    attentions: tuple[AttentionSite, ...]

    def attention(self, name: str) -> AttentionSite:
        """The attention of that name, or of a block of that name."""
        for site in self.attentions:
            if name in (site.name, site.block):
                return site
        raise UserError(f"the model has no attention {name!r}: it has {', '.join(s.name for s in self.attentions)}.")

    def layer(self, number: int) -> AttentionSite:
        if not 0 <= number < len(self.attentions):
            last = len(self.attentions) - 1
            raise UserError(f"layer {number} is not there: the model has layers 0 to {last}.")
        return self.attentions[number]

    def head(self, layer: int, head: int) -> AttentionSite:
        """The attention of a layer; raises if it has no such head."""
        site = self.layer(layer)
        if not 0 <= head < site.heads:
            raise UserError(f"head {layer}.{head} is not there: layer {layer} has heads 0 to {site.heads - 1}.")
        return site


def anatomy(model: nn.Module) -> Anatomy:
    """The parts of a GPT, of the lab's BERT, or of an encoder, decoder or T5 of `transformers`."""
    modules = dict(model.named_modules())
    blocks: dict[str, BlockSite] = {}
    attentions: list[AttentionSite] = []
    for path in modules:
        for place in PLACES:
            match = re.fullmatch(place.block, path)
            mixer = _part(modules, path, place.attention)
            if match is None or mixer is None or (place.output and not _fits(modules, path, place)):
                continue
            side = match.groupdict().get("side")
            name = f"{f'{side}.' if side else ''}blocks.{match['number']}"
            if name not in blocks:
                blocks[name] = BlockSite(name, modules[path], _part(modules, path, place.mlp))
            output = _part(modules, path, place.output)
            attentions.append(AttentionSite(f"{name}.{place.name}", name, mixer, output, _heads(model, mixer)))
    if not attentions:
        raise UserError(
            f"{type(model).__name__} has no attention the lab knows: expected a GPT or BERT of the lab, "
            "or an encoder or T5 of transformers."
        )
    return Anatomy(tuple(blocks.values()), tuple(_without_repeats(attentions)))


def _fits(modules: dict[str, nn.Module], path: str, place: Place) -> bool:
    """A mixer of the lab may have no projection; in the other families the projection tells the families apart."""
    return place.attention == "mixer" or _part(modules, path, place.output) is not None


def _part(modules: dict[str, nn.Module], path: str, part: str) -> nn.Module | None:
    """A part below a path; `.-1.` stands for the last of a list, `|` for the first of two names that is there."""
    if "|" in part:
        first, second = (_part(modules, path, name) for name in part.split("|"))
        return second if first is None else first
    if ".-1." in part:
        before, _, after = part.partition(".-1.")
        last = max((int(n) for n in _children(modules, f"{path}.{before}")), default=0)
        part = f"{before}.{last}.{after}"
    return modules.get(f"{path}.{part}")


def _children(modules: dict[str, nn.Module], path: str) -> list[str]:
    return list(dict(modules[path].named_children())) if path in modules else []


def _heads(model: nn.Module, mixer: nn.Module) -> int:
    """How many heads a mixer has, by its own attributes or those inside it; else, in a model of others, by the
    configuration. A mixer of the lab that has none counts as one head."""
    for owner in mixer.modules():
        if (count := _count(owner)) is not None:
            return count
    return next((count for owner in model.modules() if (count := _count(getattr(owner, "config", None)))), 1)


def _count(owner: object) -> int | None:
    counts = (getattr(owner, name, None) for name in HEADS)
    return next((count for count in counts if isinstance(count, int) and count > 0), None)


def _without_repeats(attentions: list[AttentionSite]) -> list[AttentionSite]:
    """A wrapper can hold the same module under two paths."""
    seen: dict[int, AttentionSite] = {}
    for site in attentions:
        seen.setdefault(id(site.module), site)
    return list(seen.values())
