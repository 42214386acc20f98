"""Who may look at whom: the mask of attention, built only when somebody asks for it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sight:
    """Queries at some positions, keys at others, and the rule which of them may meet."""

    queries_at: Tensor  # (T,) or (B, T)
    keys_at: Tensor  # (S,)
    causal: bool
    real: Tensor | None = None  # (B, S), True for keys that are tokens and not padding

    @property
    def triangular(self) -> bool:
        """The lower triangle is the whole rule: causal, and queries and keys are the same tokens.

        Padding needs no word then: it comes after the real tokens, which do not look ahead.
        """
        return self.causal and self.queries_at.dim() == 1

    def past(self) -> Tensor | None:
        """(T, S) or (B, 1, T, S), True where the key is not later than the query; None: no such rule."""
        if not self.causal:
            return None
        past = self.keys_at <= self.queries_at[..., :, None]
        return past if past.dim() == 2 else past[:, None]

    def tokens(self) -> Tensor | None:
        """(B, 1, 1, S), True where the key is a real token; None: all are."""
        return None if self.real is None else self.real[:, None, None, :]

    def mask(self) -> Tensor | None:
        """True where a query may look, broadcasting to (B, H, T, S); None: everywhere."""
        past, tokens = self.past(), self.tokens()
        if past is None or tokens is None:
            return tokens if past is None else past
        return past & tokens


def positions_of(x: Tensor) -> Tensor:
    """0 … T-1, (T,), for x (B, T, C)."""
    return torch.arange(x.shape[1], device=x.device)
