"""What a mixer is built from, and what the lab knows about a kind of mixer besides how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from attnlab.base.errors import UserError

INSIDE = frozenset({"rotary", "alibi"})
"""Positions that act inside attention. Those that act on embeddings work with every variant."""


@dataclass(frozen=True)
class MixerShape:
    """How large a mixer is and what it may see: the one argument of every mixer's constructor."""

    width: int
    """C, the size of a token's vector."""
    heads: int
    """H, into how many parts of width C/H a vector is split."""
    context: int
    """The longest sequence that a mixer with a table of positions is built for."""
    causal: bool = True
    """Position t sees positions up to t; False: every position sees all."""
    dropout: float = 0.0
    positions: str = "none"
    """How the model encodes order. Mixers act on "rotary" and "alibi"; the others act on embeddings."""
    qk_norm: bool = False
    """Normalise queries and keys before their dot product."""
    bias: bool = True
    """Give the linear projections a bias."""

    def __post_init__(self) -> None:
        for name in ("width", "heads", "context"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}: it must be at least 1.")
        if self.width % self.heads:
            raise UserError(f"width {self.width} cannot be split into {self.heads} heads: make it a multiple.")
        if not 0.0 <= self.dropout < 1.0:
            raise UserError(f"dropout is {self.dropout}: give a number from 0 up to, not including, 1.")

    @property
    def head_width(self) -> int:
        """D = C / H."""
        return self.width // self.heads


@dataclass(frozen=True)
class Variant:
    """A kind of mixer by name, with what it promises."""

    name: str
    build: Callable[[MixerShape], nn.Module]
    equation: str = ""
    paper: str = ""
    time: float | None = None
    """The promised exponent of T in the time of a full pass; None: no promise."""
    memory: float | None = None
    """The same for memory."""
    positions: frozenset[str] = frozenset()
    """Which of the positions inside attention it can use."""
    causal: bool = True
    bidirectional: bool = True
