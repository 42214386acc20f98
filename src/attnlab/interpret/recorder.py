"""What flows through a model, by name: read it, or change it on the way.

    recording = record(model, tokens, names=["blocks.*.attention.weights", "blocks.1.output"])
    recording["blocks.0.attention.weights"]                       # (B, H, T, S)

    with edited(model, {"blocks.0.attention.heads": zero_head}):  # (B, H, T, D) in, the same shape out
        logits = model(tokens)

The names of a block `blocks.N` (see anatomy.py for models with other names):

    blocks.N.input                (B, T, C)     the residual stream before it
    blocks.N.attention.input      (B, T, C)     what the attention reads
    blocks.N.attention.queries    (B, H, T, D)  after rotation and norm, where the attention has them
    blocks.N.attention.keys       (B, H, S, D)
    blocks.N.attention.values     (B, H, S, D)
    blocks.N.attention.weights    (B, H, T, S)  how much each query takes from each key
    blocks.N.attention.heads      (B, H, T, D)  weights times values
    blocks.N.attention.output     (B, T, C)     after the output projection
    blocks.N.mlp.output           (B, T, C)
    blocks.N.output               (B, T, C)     the residual stream after it

Recording changes no bit of the output. All but queries, keys, values and weights can be edited.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn

from attnlab.attention.attention import Attention
from attnlab.base.errors import UserError, unknown
from attnlab.interpret.anatomy import AttentionSite, anatomy
from attnlab.interpret.listening import Attended, Listening
from attnlab.interpret.multihead import attended_by

Edit: TypeAlias = Callable[[Tensor], Tensor | None]
"""A tensor to the one that replaces it; None leaves it as it is."""
Handle: TypeAlias = torch.utils.hooks.RemovableHandle

HEARD = ("queries", "keys", "values", "weights")
"""Read only: the fused kernel never forms the weights, and gives no access to the rest."""


@dataclass
class Recording:
    """Tensors by name, and what the model returned."""

    tensors: dict[str, Tensor]
    output: object
    attended: dict[str, Attended]
    """By attention: weights, values and, where they were seen, queries, keys and what was added to the scores."""

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise UserError(unknown("recorded name", name, self.tensors))
        return self.tensors[name]

    def __contains__(self, name: str) -> bool:
        return name in self.tensors


def names(model: nn.Module) -> list[str]:
    """Every name that can be recorded, in the order of the flow; an attention may turn out to have no weights."""
    return [*_points(model), *(f"{site.name}.{part}" for site in anatomy(model).attentions for part in HEARD)]


def record(model: nn.Module, *inputs: object, names: Sequence[str] = ("*",), **keywords: object) -> Recording:
    """One forward pass in evaluation mode; `names` are patterns, as of file names.

    Gradients are recorded only where the caller's inputs require them and grad mode is on.
    """
    points = {name: point for name, point in _points(model).items() if _wanted(name, names)}
    heard = [
        (site, part) for site in anatomy(model).attentions for part in HEARD if _wanted(f"{site.name}.{part}", names)
    ]
    tensors: dict[str, Tensor] = {}
    was_training = model.training
    model.eval()
    listening = Listening()
    try:
        with contextlib.ExitStack() as stack:
            for name, point in points.items():
                stack.enter_context(_attached(point(partial(_store, tensors, name))))
            if heard:
                for site in {site.name: site for site, _ in heard}.values():
                    stack.enter_context(_heard(site, listening))
                stack.enter_context(listening)
            output = model(*inputs, **keywords)
    finally:
        model.train(was_training)
    for site, part in heard:
        tensor = getattr(listening.attended.get(site.name), part, None)
        if tensor is not None:
            tensors[f"{site.name}.{part}"] = tensor
    return Recording(tensors, output, listening.attended)


@contextlib.contextmanager
def edited(model: nn.Module, edits: Mapping[str, Edit]) -> Iterator[None]:
    """While it is open, every forward pass goes through the edits."""
    points = _points(model)
    with contextlib.ExitStack() as stack:
        for name, edit in edits.items():
            if name not in points:
                if name.rpartition(".")[2] in HEARD:
                    raise UserError(f"{name} can be recorded, not edited: edit the heads or the output instead.")
                raise UserError(unknown("name", name, points))
            stack.enter_context(_attached(points[name](edit)))
        yield


Point: TypeAlias = Callable[[Edit], Handle]
"""Attaches an edit (or a function that only looks) to its place in the model."""


def _points(model: nn.Module) -> dict[str, Point]:
    """The places at which a tensor can be read and replaced, by name."""
    parts = anatomy(model)
    points: dict[str, Point] = {}
    for block in parts.blocks:
        points[f"{block.name}.input"] = partial(_at_input, block.module)
        for site in parts.attentions:
            if site.block == block.name:
                points |= _attention_points(site)
        if block.mlp is not None:
            points[f"{block.name}.mlp.output"] = partial(_at_output, block.mlp)
        points[f"{block.name}.output"] = partial(_at_output, block.module)
    return points


def _attention_points(site: AttentionSite) -> dict[str, Point]:
    points: dict[str, Point] = {f"{site.name}.input": partial(_at_input, site.module)}
    if site.output is not None:
        points[f"{site.name}.heads"] = partial(_at_heads, site.output, site.heads)
    beside = site.output is not None and all(part is not site.output for part in site.module.modules())
    points[f"{site.name}.output"] = partial(_at_output, site.output if beside and site.output else site.module)
    return points


def _at_input(module: nn.Module, edit: Edit) -> Handle:
    def hook(
        _: nn.Module, args: tuple[object, ...], keywords: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]] | None:
        if args:
            new = edit(_tensor(args[0]))
            return None if new is None else ((new, *args[1:]), keywords)
        new = edit(_tensor(keywords["hidden_states"]))
        return None if new is None else (args, {**keywords, "hidden_states": new})

    return module.register_forward_pre_hook(hook, with_kwargs=True)


def _at_output(module: nn.Module, edit: Edit) -> Handle:
    def hook(_: nn.Module, args: tuple[object, ...], output: object) -> object:
        if isinstance(output, tuple):  # transformers: the vectors and more
            new = edit(_tensor(output[0]))
            return None if new is None else (new, *output[1:])
        return edit(_tensor(output))

    return module.register_forward_hook(hook)


def _at_heads(projection: nn.Module, heads: int, edit: Edit) -> Handle:
    """The input of the output projection (B, T, H·D), as (B, H, T, D)."""

    def split(merged: Tensor) -> Tensor | None:
        new = edit(merged.unflatten(-1, (heads, -1)).transpose(-3, -2))
        return None if new is None else new.transpose(-3, -2).flatten(-2)

    return _at_input(projection, split)


@contextlib.contextmanager
def _attached(handle: Handle) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _heard(site: AttentionSite, listening: Listening) -> Iterator[None]:
    """Listen while the attention runs; the lab's own also show the queries and keys of weights computed in the open."""
    seen: list[tuple[Tensor, Tensor]] = []

    def begin(_: nn.Module, args: tuple[object, ...], keywords: dict[str, object]) -> None:
        seen.clear()
        listening.open(site.name, _tensor(args[0] if args else keywords["hidden_states"]))

    def look(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.append((args[0], args[1]))

    def end(*_: object) -> None:
        listening.close()
        attended = listening.attended.get(site.name)
        if attended is not None and attended.queries is None and len(seen) == 1:
            attended.queries, attended.keys = seen[0]

    handles = [
        site.module.register_forward_pre_hook(begin, with_kwargs=True),
        site.module.register_forward_hook(end, always_call=True),
    ]
    if isinstance(site.module, Attention):
        handles.append(site.module.core.register_forward_pre_hook(look))
    for part in site.module.modules():
        if isinstance(part, nn.MultiheadAttention):
            handles += _multihead_hooks(part, listening)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _multihead_hooks(module: nn.MultiheadAttention, listening: Listening) -> list[Handle]:
    """Nobody listens to torch's own attention while it runs; afterwards its weights are computed from its inputs."""

    def begin(*_: object) -> None:
        listening.pause()

    def resume(*_: object) -> None:
        listening.resume()

    def end(_: nn.Module, args: tuple[object, ...], keywords: dict[str, object], __: object) -> None:
        listening.pause()
        attended = attended_by(module, args, keywords)
        listening.resume()
        if attended is not None:
            listening.add(attended)

    return [
        module.register_forward_pre_hook(begin),
        module.register_forward_hook(resume, always_call=True),
        module.register_forward_hook(end, with_kwargs=True),
    ]


def _store(tensors: dict[str, Tensor], name: str, tensor: Tensor) -> None:
    tensors[name] = tensor


def _wanted(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _tensor(value: object) -> Tensor:
    assert isinstance(value, Tensor), f"expected a tensor, got {type(value).__name__}"
    return value
