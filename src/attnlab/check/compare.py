"""How an answer differs from the expected one, entry by entry, and what its numbers alone suggest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

TOLERANCE = 1e-5
# Anything this low is −∞ to a softmax over scores of ordinary size: a mask of −1e9 is as good.
MINUS_INFINITY = -1e4


@dataclass(frozen=True)
class Difference:
    index: tuple[int, ...]
    expected: float
    came: float
    largest: float


def as_tensors(answer: Any) -> list[Tensor] | None:
    """A tensor, or a tuple or list of them, as a list; None when it is neither."""
    parts = list(answer) if isinstance(answer, tuple | list) else [answer]
    return parts if parts and all(isinstance(part, Tensor) for part in parts) else None


def describe(answer: Any) -> str:
    """In a few words: `(3, 5, 5) float32`."""
    tensors = as_tensors(answer)
    if tensors is None:
        return "None" if answer is None else f"a {type(answer).__name__}"
    words = [f"{tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in tensors]
    return words[0] if isinstance(answer, Tensor) else f"{len(words)} tensors: {', '.join(words)}"


def same_shapes(expected: Any, came: Any) -> bool:
    left, right = as_tensors(expected), as_tensors(came)
    return left is not None and right is not None and [t.shape for t in left] == [t.shape for t in right]


def difference(expected: Any, came: Any, tolerance: float = TOLERANCE) -> Difference | None:
    """The first entry that differs and the largest difference, or None, of two answers of the same shape."""
    wanted = _flat(expected)
    given = _flat(came)
    size = wanted.abs().nan_to_num(nan=0.0, posinf=0.0)  # to an infinite entry nothing else is near
    equal = (wanted == given) | ((wanted - given).abs() <= tolerance * (1 + size))
    equal |= wanted.isnan() & given.isnan()
    equal |= wanted.isinf() & (wanted < 0) & (given <= MINUS_INFINITY)
    if equal.all():
        return None
    gaps = torch.where(equal, 0.0, (wanted - given).abs()).nan_to_num(nan=math.inf, posinf=math.inf)
    first = int((~equal).nonzero()[0])
    return Difference(_index(expected, first), float(wanted[first]), float(given[first]), float(gaps.max()))


def same(expected: Any, came: Any) -> bool:
    return same_shapes(expected, came) and difference(expected, came) is None


def _flat(answer: Any) -> Tensor:
    return torch.cat([t.detach().double().flatten() for t in as_tensors(answer) or []])


def _index(answer: Any, position: int) -> tuple[int, ...]:
    """Where the flat position lies; for a tuple of tensors, which of them comes first."""
    tensors = as_tensors(answer) or []
    which = 0
    while position >= tensors[which].numel():
        position -= tensors[which].numel()
        which += 1
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(position), tensors[which].shape))
    return place if isinstance(answer, Tensor) else (which, *place)


def guess(expected: Any, came: Any) -> str:
    """For an answer that no catalogued mistake explains: what the numbers alone suggest."""
    if not same_shapes(expected, came):
        return _guess_from_shapes(expected, came)
    wanted, given = _flat(expected), _flat(came)
    if given.isnan().any():
        return "there is a NaN: look for 0 · ∞, ∞ − ∞ or a row in which everything is masked."
    finite = wanted.isfinite() & given.isfinite() & (wanted.abs() > TOLERANCE)
    ratios = given[finite] / wanted[finite]
    if len(ratios) and (ratios - ratios[0]).abs().max() < TOLERANCE * ratios[0].abs():
        return f"every entry is {float(ratios[0]):.4g} times too large: look at the scale."
    if torch.allclose(wanted.sort().values, given.sort().values, atol=TOLERANCE):
        return "the numbers are right but in other places: look at the reshapes and transposes."
    return "none of the known mistakes gives these numbers: compare with the equation step by step."


def _guess_from_shapes(expected: Any, came: Any) -> str:
    if came is None:
        return "nothing is returned: is the return statement missing?"
    left, right = as_tensors(expected), as_tensors(came)
    if right is None:
        return "return torch tensors, so that gradients can flow."
    if left is not None and len(left) != len(right):
        return f"return {len(left)} tensor{'s' if len(left) > 1 else ''}, not {len(right)}."
    if left and sorted(left[0].shape) == sorted(right[0].shape):
        return "the axes are in another order: look at the transposes."
    if left and left[0].numel() == right[0].numel():
        return "the numbers of entries agree: a reshape is missing or has other sizes."
    return "write the shape of every intermediate result beside its line."
