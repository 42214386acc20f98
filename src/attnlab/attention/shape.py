"""The numbers every mixer is built from."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab.base.errors import UserError


@dataclass(frozen=True)
class MixerShape:
    """How large a mixer is and what it may see; the one argument every mixer's constructor takes."""

    width: int
    """C, the size of a token's vector."""
    heads: int
    """H, into how many parts of width C/H a vector is split."""
    context: int
    """The longest sequence a mixer with a table per position is built for."""
    causal: bool = True
    """Position t sees positions up to t; False: every position sees all."""
    dropout: float = 0.0
    positions: str = "none"
    """What the model uses for order. Mixers act on "rotary" and "alibi"; the others act on embeddings."""
    qk_norm: bool = False
    """Normalise queries and keys before they meet."""
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
