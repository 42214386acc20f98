"""Removing a part of a model: what it adds is replaced by something that does not depend on the input.

    zero       0
    mean       its mean over all texts and positions of the examples, padding not counted
    resample   its value in another example of the same batch, at the same position (or at that one's last, if it is
               shorter), so that what flows has the usual size but says something else

A head is removed before the output projection; of a mixer or an MLP, its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.base.errors import UserError, unknown
from attnlab.interpret.anatomy import Anatomy, anatomy
from attnlab.interpret.measured import Measured
from attnlab.interpret.recorder import edited, record

WHAT = ("head", "attention", "mlp")
HOW = ("zero", "mean", "resample")


@dataclass(frozen=True, order=True)
class ModelPart:
    """A head, or the mixer or MLP of a layer."""

    layer: int
    what: str
    head: int | None = None

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}" if self.what == "head" else f"{self.layer}.{self.what}"


def read_part(text: str) -> ModelPart:
    """2.1 is head 1 of layer 2; 2.attention and 2.mlp are its mixer and MLP."""
    layer, _, rest = text.strip().partition(".")
    if layer.isdecimal() and rest.isdecimal():
        return ModelPart(int(layer), "head", int(rest))
    if layer.isdecimal() and rest in ("attention", "mlp"):
        return ModelPart(int(layer), rest)
    raise UserError(f"{text!r} is not a part of a model: write 2.1 for head 1 of layer 2, or 2.attention, or 2.mlp.")


def parts_of(model: nn.Module, what: str) -> list[ModelPart]:
    """All heads, mixers or MLPs of a model, from the first layer on."""
    if what not in WHAT:
        raise UserError(unknown("part", what, WHAT))
    sites = anatomy(model).attentions
    if what != "head":
        return [ModelPart(layer, what) for layer in range(len(sites))]
    return [ModelPart(layer, what, head) for layer, site in enumerate(sites) for head in range(site.heads)]


def name_of(parts: Anatomy, part: ModelPart) -> str:
    """The name under which the recorder has what a part adds; raises if the model has no such part."""
    site = parts.layer(part.layer) if part.head is None else parts.head(part.layer, part.head)
    if part.what == "mlp":
        if next(block for block in parts.blocks if block.name == site.block).mlp is None:
            raise UserError(f"layer {part.layer} has no MLP that the lab knows: remove another part.")
        return f"{site.block}.mlp.output"
    if part.what == "head":
        if site.output is None:
            raise UserError(
                f"the heads of layer {part.layer} cannot be removed one by one, since nothing joins them that the lab "
                f"knows: remove {part.layer}.attention instead."
            )
        return f"{site.name}.heads"
    return f"{site.name}.output"


class Remover:
    """Removes parts of a model in one of three ways; the means are computed once."""

    def __init__(self, measured: Measured, how: str, seed: int = 0) -> None:
        if how not in HOW:
            raise UserError(unknown("way of removing", how, HOW))
        if how == "resample" and measured.count < 2:
            raise UserError("resample takes values of other examples: give at least two examples.")
        self.measured, self.how = measured, how
        self.anatomy = anatomy(measured.model)
        generator = torch.Generator().manual_seed(seed)
        self._donors = [_donors(len(batch.rows), generator) for batch in measured.batches]
        self._means: dict[str, Tensor] = {}

    @torch.no_grad()
    def scores(self, parts: Sequence[ModelPart]) -> dict[str, Tensor]:
        """The measures of every example (N,) without these parts."""
        removed: dict[str, list[ModelPart]] = {}
        for part in parts:
            removed.setdefault(name_of(self.anatomy, part), []).append(part)
        if self.how == "mean":
            self._add_means([name for name in removed if name not in self._means])
        return self.measured.scores(lambda number: self._edited(number, removed))

    @contextmanager
    def _edited(self, number: int, removed: Mapping[str, list[ModelPart]]) -> Iterator[None]:
        """While it is open, the parts are removed for the batch of this number."""
        model, batch = self.measured.model, self.measured.batches[number]
        values: dict[str, Tensor] = {}
        if self.how == "resample":
            flow = record(model, names=list(removed), **batch.inputs)
            values = {name: _of_donors(flow[name], batch.real, self._donors[number]) for name in removed}
        elif self.how == "mean":
            values = {name: self._means[name] for name in removed}
        edits = {name: _replacing(parts, values.get(name)) for name, parts in removed.items()}
        with edited(model, edits):
            yield

    def _add_means(self, names: Sequence[str]) -> None:
        """Σ over real tokens / their number: (H, 1, D) of heads, (1, C) of outputs."""
        if not names:
            return
        sums: dict[str, Tensor] = {}
        count = 0
        for batch in self.measured.batches:
            flow = record(self.measured.model, names=names, **batch.inputs)
            for name in names:
                tensor = flow[name].double()
                real = _with_prompt(batch.real, tensor.shape[-2])
                counted = real.view(len(real), *([1] * (tensor.dim() - 3)), -1, 1)
                total = (tensor * counted).sum((0, -2), keepdim=True)[0]
                sums[name] = sums[name] + total if name in sums else total
            count += int(real.sum())
        self._means |= {name: (total / count).float() for name, total in sums.items()}


def _replacing(parts: Sequence[ModelPart], values: Tensor | None) -> Callable[[Tensor], Tensor]:
    """An edit that puts `values` (None: zeros) where the parts are: heads of (B, H, T, D), or all of (B, T, C)."""

    def edit(x: Tensor) -> Tensor:
        new = torch.zeros_like(x) if values is None else values.to(x.dtype).expand_as(x)
        heads = [part.head for part in parts if part.head is not None]
        if not heads:
            return new
        changed = x.clone()
        changed[:, heads] = new[:, heads]
        return changed

    return edit


def _donors(count: int, generator: torch.Generator) -> Tensor:
    """For each example of a batch another one: each follows the one before it in a random order."""
    order = torch.randperm(count, generator=generator)
    donors = torch.empty_like(order)
    donors[order] = order.roll(1)
    return donors


def _of_donors(values: Tensor, real: Tensor, donors: Tensor) -> Tensor:
    """(B, …, T, D): the donors' values; positions after a donor's last token take its last."""
    T = values.shape[-2]
    last = _with_prompt(real, T).sum(1)[donors, None] - 1  # (B, 1)
    at = torch.minimum(torch.arange(T), last)  # (B, T)
    shape = (len(at), *([1] * (values.dim() - 3)), T, 1)
    return values[donors].gather(-2, at.view(shape).expand_as(values))


def _with_prompt(real: Tensor, length: int) -> Tensor:
    """(B, T) as (B, length): prompt tuning puts learned vectors before the tokens."""
    return F.pad(real, (length - real.shape[1], 0), value=True)
