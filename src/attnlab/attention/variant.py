"""What the lab knows about a kind of attention besides how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from attnlab.attention.shape import MixerShape

INSIDE = frozenset({"rotary", "alibi"})
"""Positions that act inside attention. Those that act on embeddings go with every variant."""


@dataclass(frozen=True)
class Variant:
    """A mixer's name card."""

    name: str
    build: Callable[[MixerShape], nn.Module]
    equation: str = ""
    paper: str = ""
    time: float | None = None
    """The promised exponent of T in the time of a full pass; None: nothing is promised."""
    memory: float | None = None
    """The same for memory."""
    positions: frozenset[str] = frozenset()
    """Which of the positions inside attention it can use."""
    causal: bool = True
    bidirectional: bool = True
