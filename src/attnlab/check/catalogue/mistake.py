"""What a catalogued mistake is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

Function = Callable[..., Any]


@dataclass(frozen=True)
class Mistake:
    key: str
    advice: str
    function: str
    """The piece in which it is made."""
    wrong: Function
    """A wrong implementation of that piece, with the same signature."""


def mistakes_in(function: str, *entries: tuple[str, str, Function]) -> tuple[Mistake, ...]:
    """From entries (key, advice, wrong implementation); of two that agree on an input, the first is reported."""
    return tuple(Mistake(key, advice, function, wrong) for key, advice, wrong in entries)


def unchanged(x: Tensor, *_: Any) -> Tensor:
    """The step that was forgotten."""
    return x
