"""How much each output of an attention depends on each of its inputs: the picture for mixers without weights.

    I[t, s]² = ‖∂y_t/∂x_s‖² = Σ_c,d (∂y_t,c / ∂x_s,d)²

With as many probes as y_t has numbers it is exact, one number c at a time. With fewer it is estimated: for a vector v
of random signs, E ‖vᵀ ∂y_t/∂x_s‖² is that sum (Hutchinson 1990).

A weight says what a query takes from a value. Influence also counts how queries, keys and the normaliser change with
the input, so the two can disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.interpret.anatomy import anatomy
from attnlab.interpret.recorder import edited

PROBES = 32
AT_ONCE = 256  # vectors per backward pass


@dataclass(frozen=True)
class Influence:
    """(T, T) of one attention, rows are outputs; and how it was computed."""

    name: str
    matrix: Tensor
    probes: int
    exact: bool


def influences(
    model: nn.Module, inputs: Mapping[str, Tensor], probes: int | None = None, seed: int = 0
) -> list[Influence]:
    """That of every self-attention of a model, at the inputs that it has in a pass over one text.

    `probes` of None: PROBES, which is exact where the vectors are not longer.
    """
    names = [site.name for site in anatomy(model).attentions if not site.name.endswith(".cross")]
    return [influence(model, inputs, name, probes, seed) for name in names]


def influence(
    model: nn.Module, inputs: Mapping[str, Tensor], name: str, probes: int | None = None, seed: int = 0
) -> Influence:
    """That of the attention of this name."""
    ends: dict[str, Tensor] = {}

    def begin(x: Tensor) -> Tensor:
        ends["x"] = x.detach().requires_grad_()
        return ends["x"]

    def end(y: Tensor) -> None:
        ends["y"] = y

    was_training = model.training
    model.eval()
    with torch.enable_grad(), edited(model, {f"{name}.input": begin, f"{name}.output": end}):
        model(**inputs)
    model.train(was_training)
    x, y = ends["x"], ends["y"]  # (1, T, C) each
    T, C = y.shape[1:]
    count = min(C, PROBES) if probes is None else probes
    exact = count >= C
    vectors = torch.eye(C, dtype=y.dtype) if exact else _signs(count, C, seed).to(y.dtype)  # (K, C)
    squares = torch.zeros(T, T, dtype=y.dtype)
    rows = torch.arange(T).repeat_interleave(len(vectors))
    for at, part in zip(rows.split(AT_ONCE), vectors.repeat(T, 1).split(AT_ONCE), strict=True):
        seeds = y.new_zeros(len(part), *y.shape)
        seeds[torch.arange(len(part)), 0, at] = part
        (gradient,) = torch.autograd.grad(y, x, seeds, retain_graph=True, is_grads_batched=True)
        squares.index_add_(0, at, gradient[:, 0].square().sum(-1))
    return Influence(name, (squares / (1 if exact else count)).sqrt(), len(vectors), exact)


def _signs(count: int, width: int, seed: int) -> Tensor:
    """(count, width) of ±1."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (count, width), generator=generator).double() * 2 - 1
