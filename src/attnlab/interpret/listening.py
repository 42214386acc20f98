"""Which weights an attention computed, whoever wrote it: overheard from the calls to torch that it makes.

    F.scaled_dot_product_attention(q, k, v, mask)     W = softmax(q kᵀ · scale + mask), which the kernel never forms
    W = softmax(scores); …; W @ V                     the matrix itself, where code multiplies it with the values

The second form covers every mixer that computes its weights in the open, a person's own among them: what a softmax (or
a one-hot choice) returns is followed through masks, dropout and casts until it is multiplied with something. Listening
changes no operation, so no bit of the output. torch takes another kernel for nn.MultiheadAttention while anyone
listens, so nobody does while it runs (`pause`); multihead.py has its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

Function: TypeAlias = Callable[..., object]
Arguments: TypeAlias = tuple[object, ...]

SOURCES = {"softmax", "one_hot"}
PRODUCTS = {"matmul", "__matmul__", "bmm", "einsum"}
TURNS = {"transpose", "permute", "mT", "T", "swapaxes", "t", "__get__"}


@dataclass
class Attended:
    """What one attention computed. Heads are the second axis; queries and keys only where they were seen."""

    weights: Tensor  # (B, H, T, S)
    values: Tensor  # (B, H, S, D)
    heads: Tensor  # (B, H, T, D), weights times values
    queries: Tensor | None = None  # (B, H, T, D)
    keys: Tensor | None = None  # (B, H, S, D)
    bias: Tensor | None = None  # broadcasts to (B, H, T, S): what is added to the scores, -∞ where a key is hidden
    scale: float = 1.0
    scores: Tensor | None = None  # broadcasts to (B, H, T, S): what the softmax was given, where code calls it itself


@dataclass
class _Open:
    """A site whose forward is running."""

    name: str
    batch: int
    calls: list[Attended] = field(default_factory=list)
    derived: dict[int, Tensor] = field(default_factory=dict)
    """Tensors that come from a softmax, by identity; kept alive so that no other tensor gets the same one."""
    scores: Tensor | None = None
    """What the last softmax was given."""


class Listening(TorchFunctionMode):
    """While it is active, the attentions between `open` and `close` are collected in `attended`, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.attended: dict[str, Attended] = {}
        self._sites: list[_Open] = []

    def open(self, name: str, x: Tensor) -> None:
        """The attention `name` begins, with the input x (B, T, C)."""
        self._sites.append(_Open(name, x.shape[0]))

    def close(self) -> None:
        site = self._sites.pop()
        if site.calls:
            self.attended[site.name] = _joined(site.calls)

    def add(self, attended: Attended) -> None:
        """What the open attention computed, seen elsewhere."""
        self._sites[-1].calls.append(attended)

    def pause(self) -> None:
        """As if it were not active, until `resume`."""
        self.__exit__(None, None, None)

    def resume(self) -> None:
        self.__enter__()

    def __torch_function__(
        self, func: Function, types: Iterable[type], args: Arguments = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if self._sites and isinstance(result, Tensor):
            self._hear(self._sites[-1], func, args, kwargs or {}, result)
        return result

    def _hear(self, site: _Open, func: Function, args: Arguments, kwargs: Mapping[str, object], result: Tensor) -> None:
        name = getattr(func, "__name__", "")
        if func is F.scaled_dot_product_attention:
            site.calls.append(fused(*args, result=result, **kwargs))  # type: ignore[arg-type]
        elif name in SOURCES:
            site.derived[id(result)] = result
            site.scores = args[0] if name == "softmax" and args and isinstance(args[0], Tensor) else None
        elif site.derived:
            tensors = [part for part in _flat([*args, *kwargs.values()]) if isinstance(part, Tensor)]
            weights = [part for part in tensors if id(part) in site.derived]
            if not weights:
                return
            if name not in PRODUCTS:
                if name not in TURNS and result.shape[-2:] == weights[0].shape[-2:]:
                    site.derived[id(result)] = result
            elif len(tensors) == 2 and (call := _multiplied(weights[0], tensors[1], result, site.batch)) is not None:
                call.scores = None if site.scores is None else _by_head(site.scores, site.batch)
                site.calls.append(call)


def fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    result: Tensor,
) -> Attended:
    """The weights of a call of torch's fused kernel, from its arguments, in the same precision."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    if key.shape[1] != query.shape[1]:  # groups of heads share keys and values
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    bias = attn_mask
    if is_causal:
        past = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        bias = past
    if bias is not None and bias.dtype == torch.bool:
        bias = torch.zeros(bias.shape, dtype=query.dtype, device=query.device).masked_fill_(~bias, float("-inf"))
    scores = query @ key.transpose(-1, -2) * factor  # in the order of explicit attention, so with its rounding
    weights = (scores if bias is None else scores + bias).softmax(-1)
    return Attended(weights, value, result, query, key, bias, factor)


def _multiplied(weights: Tensor, values: Tensor, result: Tensor, batch: int) -> Attended | None:
    """Weights (…, T, S) times values (…, S, D), with the heads as the second axis; None for another product."""
    if weights.dim() < 2 or values.dim() < 2 or values.shape[-2] != weights.shape[-1]:
        return None
    if result.shape[-2:] != (weights.shape[-2], values.shape[-1]):
        return None
    if batch > 1 and weights.dim() == 2:
        weights = weights.expand(batch, *weights.shape)  # one matrix for every text
    shaped = [_by_head(part, batch) for part in (weights, values, result)]
    w, v, r = shaped
    if w is None or v is None or r is None:
        return None
    w, v = (part.expand(r.shape[0], r.shape[1], *part.shape[2:]) for part in (w, v))
    return Attended(w, v, r)


def _by_head(part: Tensor, batch: int) -> Tensor | None:
    """(B, H, ·, ·) as it is; (B·H, ·, ·), (B, ·, ·) and (·, ·) with their heads as the second axis."""
    if part.dim() == 4:
        return part
    if part.dim() == 3:
        return part.unflatten(0, (batch, -1)) if part.shape[0] % batch == 0 else None
    return part[None, None] if part.dim() == 2 else None


def _joined(calls: list[Attended]) -> Attended:
    """Heads computed one after the other, as one."""
    if len(calls) == 1:
        return calls[0]
    first = calls[0]
    if any(call.weights.shape[-2:] != first.weights.shape[-2:] for call in calls):
        return calls[-1]
    parts = {
        name: [getattr(call, name) for call in calls]
        for name in ("weights", "values", "heads", "queries", "keys", "scores")
    }
    whole = {name: torch.cat(part, 1) if all(p is not None for p in part) else None for name, part in parts.items()}
    return Attended(**whole, bias=first.bias, scale=first.scale)  # type: ignore[arg-type]


def _flat(values: Iterable[object]) -> Iterable[object]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
