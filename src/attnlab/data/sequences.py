"""Sequences for a causal model: what it reads, and from which token on it predicts the next one.

Documents, corrupted documents and questions with answers are all sequences, so they can be mixed in one data set.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import torch
from torch import Tensor

from attnlab.data.batching import IGNORE, pad


@dataclass(frozen=True)
class TokenSequence:
    """Tokens; the first `given` of them are not targets."""

    tokens: list[int]
    given: int = 0


class SequenceSource(Protocol):
    """A source of sequences; `epoch` seeds what is drawn at random."""

    @property
    def lengths(self) -> Sequence[int]: ...

    def example(self, index: int, epoch: int) -> TokenSequence: ...


class NextTokenExamples:
    """Sequences of one or several sources as a data set that can be batched."""

    def __init__(self, sources: Sequence[SequenceSource], padding_id: int) -> None:
        self.sources, self.padding_id = sources, padding_id
        self.lengths = [length for source in sources for length in source.lengths]
        self._ends = list(accumulate(len(source.lengths) for source in sources))

    def example(self, index: int, epoch: int) -> TokenSequence:
        number = bisect_right(self._ends, index)
        return self.sources[number].example(index - (self._ends[number - 1] if number else 0), epoch)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        return next_token_tensors([self.example(index, epoch) for index in indices], self.padding_id)


def next_token_tensors(sequences: Sequence[TokenSequence], padding_id: int) -> dict[str, Tensor]:
    """Sequences as inputs (B, T) and targets shifted by one; padding and given tokens are not targets."""
    tokens = pad([sequence.tokens[:-1] for sequence in sequences], padding_id)
    targets = pad([sequence.tokens[1:] for sequence in sequences], IGNORE)
    padding = targets != IGNORE
    given = torch.tensor([sequence.given for sequence in sequences])
    before = torch.arange(1, tokens.shape[1] + 1) < given[:, None]  # the target at position t is token t + 1
    wanted = padding & ~before
    return {"tokens": tokens, "targets": targets.masked_fill(before, IGNORE), "padding": padding, "wanted": wanted}


def common_start(sequences: Sequence[Any]) -> int:
    """The number of items at the beginning that all of these texts or lists share."""
    first, last = min(sequences), max(sequences)  # all others sort between these two
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
