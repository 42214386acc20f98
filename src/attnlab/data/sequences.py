"""Sequences for a causal model: what it reads, and from where on it is asked for the next token.

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
class Asked:
    """Tokens, the first `given` of which are no targets."""

    tokens: list[int]
    given: int = 0


class Source(Protocol):
    """Where sequences come from; `epoch` seeds whatever is drawn at random."""

    @property
    def lengths(self) -> Sequence[int]: ...

    def example(self, index: int, epoch: int) -> Asked: ...


class NextTokenExamples:
    """Sequences from one source or several as a data set the lab can batch."""

    def __init__(self, sources: Sequence[Source], padding_id: int) -> None:
        self.sources, self.padding_id = sources, padding_id
        self.lengths = [length for source in sources for length in source.lengths]
        self._ends = list(accumulate(len(source.lengths) for source in sources))

    def example(self, index: int, epoch: int) -> Asked:
        number = bisect_right(self._ends, index)
        return self.sources[number].example(index - (self._ends[number - 1] if number else 0), epoch)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        return next_token_tensors([self.example(index, epoch) for index in indices], self.padding_id)


def next_token_tensors(sequences: Sequence[Asked], padding_id: int) -> dict[str, Tensor]:
    """Sequences as inputs (B, T) and the targets one place on; neither padding nor what is given is a target."""
    tokens = pad([sequence.tokens[:-1] for sequence in sequences], padding_id)
    targets = pad([sequence.tokens[1:] for sequence in sequences], IGNORE)
    padding = targets != IGNORE
    given = torch.tensor([sequence.given for sequence in sequences])
    before = torch.arange(1, tokens.shape[1] + 1) < given[:, None]  # the target at place t is token t + 1
    wanted = padding & ~before
    return {"tokens": tokens, "targets": targets.masked_fill(before, IGNORE), "padding": padding, "wanted": wanted}


def common_start(sequences: Sequence[Any]) -> int:
    """How many items at the beginning are the same in all of these texts or lists."""
    first, last = min(sequences), max(sequences)  # all others lie between these two
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
