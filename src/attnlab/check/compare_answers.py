"""How an answer differs from the expected one, entry by entry, and what its numbers alone suggest as the cause."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.check.judge.candidate import Other

TOLERANCE = 1e-5
# For a softmax over scores of ordinary size anything this low is −∞: a mask of −1e9 is accepted.
MINUS_INFINITY = -1e4


@dataclass(frozen=True)
class Difference:
    index: tuple[int, ...]
    expected: float
    got: float
    largest: float


def as_tensors(answer: Any) -> list[Tensor] | None:
    """A tensor, or a tuple or list of tensors, as a list; None for anything else."""
    parts = list(answer) if isinstance(answer, tuple | list) else [answer]
    return parts if parts and all(isinstance(part, Tensor) for part in parts) else None


def describe(answer: Any) -> str:
    """Shape and type in short: `(3, 5, 5) float32`."""
    tensors = as_tensors(answer)
    if tensors is None:
        kind = answer.kind if isinstance(answer, Other) else type(answer).__name__
        return "None" if kind == "NoneType" else f"a {kind}"
    words = [f"{tuple(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in tensors]
    return words[0] if isinstance(answer, Tensor) else f"{len(words)} tensors: {', '.join(words)}"


def same_shapes(expected: Any, got: Any) -> bool:
    left, right = as_tensors(expected), as_tensors(got)
    if left is None or right is None or any(t.is_complex() for t in right):
        return False
    return [t.shape for t in left] == [t.shape for t in right]


def difference(expected: Any, got: Any, tolerance: float = TOLERANCE) -> Difference | None:
    """The first entry that differs and the largest difference, or None, of two answers of the same shape."""
    left, right = _flat(expected), _flat(got)
    equal = _equal(left, right, tolerance)
    if equal.all():
        return None
    gaps = torch.where(equal, 0.0, (left - right).abs()).nan_to_num(nan=math.inf, posinf=math.inf)
    first = int((~equal).nonzero()[0])
    return Difference(_index(expected, first), float(left[first]), float(right[first]), float(gaps.max()))


def same(expected: Any, got: Any) -> bool:
    return same_shapes(expected, got) and bool(_equal(_flat(expected), _flat(got), TOLERANCE).all())


def _equal(left: Tensor, right: Tensor, tolerance: float) -> Tensor:
    """Entry by entry. NaN equals nothing, not even NaN: two answers that are not numbers have nothing in common."""
    size = left.abs().nan_to_num(nan=0.0, posinf=0.0)  # no relative tolerance around an infinite entry
    equal = (left == right) | ((left - right).abs() <= tolerance * (1 + size))
    return equal | ((left == -math.inf) & (right <= MINUS_INFINITY))


def _flat(answer: Any) -> Tensor:
    return torch.cat([t.detach().double().flatten() for t in as_tensors(answer) or []])


def _index(answer: Any, position: int) -> tuple[int, ...]:
    """The index of a flat position; for a tuple of tensors, the number of the tensor comes first."""
    tensors = as_tensors(answer) or []
    which = 0
    while position >= tensors[which].numel():
        position -= tensors[which].numel()
        which += 1
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(position), tensors[which].shape))
    return index if isinstance(answer, Tensor) else (which, *index)


def guess_cause(expected: Any, got: Any) -> str:
    """For an answer that no catalogued mistake explains: what the numbers alone suggest."""
    if not same_shapes(expected, got):
        return _guess_from_shapes(expected, got)
    left, right = _flat(expected), _flat(got)
    if right.isnan().any():
        return "the result contains NaN: look for 0 · ∞, ∞ − ∞ or a row in which everything is masked."
    finite = left.isfinite() & right.isfinite() & (left.abs() > TOLERANCE)
    ratios = right[finite] / left[finite]
    if len(ratios) and (ratios - ratios[0]).abs().max() < TOLERANCE * ratios[0].abs():
        return f"every entry is {float(ratios[0]):.4g} times too large: look at the scale."
    if torch.allclose(left.sort().values, right.sort().values, atol=TOLERANCE):
        return "the numbers are right but in the wrong positions: look at the reshapes and transposes."
    return "no known mistake gives these numbers: compare with the equation step by step."


def _guess_from_shapes(expected: Any, got: Any) -> str:
    if describe(got) == "None":
        return "nothing is returned: is the return statement missing?"
    left, right = as_tensors(expected), as_tensors(got)
    if right is None:
        return "return torch tensors, so that gradients can flow."
    if left is not None and len(left) != len(right):
        return f"return {len(left)} tensor{'s' if len(left) > 1 else ''}, not {len(right)}."
    if left and sorted(left[0].shape) == sorted(right[0].shape):
        return "the axes are in the wrong order: look at the transposes."
    if left and left[0].numel() == right[0].numel():
        return "the number of entries is right: a reshape is missing or has the wrong sizes."
    return "write the shape of every intermediate result next to its line."
