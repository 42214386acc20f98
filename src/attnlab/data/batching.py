"""From examples to batches: examples of like length together, padded to the longest among them.

The order of an epoch depends on the seed and the epoch's number and on nothing else, so a run can be taken
up in the middle of an epoch, and an example drawn at random (a corrupted span, say) is the same whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

IGNORE = -100  # a target that does not count
WINDOW = 50  # batches sorted together: enough for like lengths, few enough to stay random


class Examples(Protocol):
    """A data set the lab can batch."""

    @property
    def lengths(self) -> Sequence[int]:
        """Of each example, in tokens: what batches are made by."""
        ...

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        """The examples as padded tensors; `epoch` seeds whatever is drawn at random."""
        ...


@dataclass(frozen=True)
class Batch:
    """Tensors for the model, and what to count."""

    inputs: dict[str, Tensor]
    indices: tuple[int, ...]
    tokens: int  # real ones
    positions: int  # with padding

    @property
    def examples(self) -> int:
        return len(self.indices)

    def to(self, device: torch.device) -> Batch:
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in self.inputs.items()}
        return Batch(moved, self.indices, self.tokens, self.positions)


@dataclass(frozen=True)
class BatchPlan:
    """Which examples go together: by count (`size`) or by a budget of padded tokens (`tokens`)."""

    lengths: Sequence[int]
    size: int | None = 32
    tokens: int | None = None
    by_length: bool = True
    seed: int = 0

    def epoch(self, epoch: int, shuffle: bool = True) -> list[list[int]]:
        """The batches of an epoch, as lists of example numbers."""
        lengths = np.asarray(self.lengths)
        generator = np.random.default_rng([self.seed, epoch])
        order = generator.permutation(len(lengths)) if shuffle else np.arange(len(lengths))
        if self.by_length:
            order = np.concatenate([self._sorted(part, lengths) for part in self._windows(order)])
        batches = self._cut(order, lengths)
        if shuffle:
            generator.shuffle(batches)
        return batches

    def _windows(self, order: np.ndarray) -> list[np.ndarray]:
        mean = max(1.0, float(np.mean(self.lengths)))
        window = WINDOW * (self.size or max(1, int((self.tokens or 1) / mean)))
        return [order[start : start + window] for start in range(0, len(order), window)] or [order]

    @staticmethod
    def _sorted(part: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return part[np.argsort(lengths[part], kind="stable")]  # stable: equal lengths stay shuffled

    def _cut(self, order: np.ndarray, lengths: np.ndarray) -> list[list[int]]:
        batches: list[list[int]] = []
        current: list[int] = []
        longest = 0
        for index in order.tolist():
            grown = max(longest, int(lengths[index]))
            full = len(current) >= self.size if self.size else grown * (len(current) + 1) > (self.tokens or 0)
            if current and full:
                batches.append(current)
                current, grown = [], int(lengths[index])
            current.append(index)
            longest = grown
        return [*batches, current] if current else batches


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Rows of different lengths as one tensor (B, longest), filled up at the right."""
    longest = max(len(row) for row in rows)
    out = torch.full((len(rows), longest), value, dtype=torch.long)
    for n, row in enumerate(rows):
        out[n, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return out


class Batches:
    """The batches of a data set, epoch after epoch, from any place on."""

    def __init__(self, data: Examples, plan: BatchPlan, accumulate: int = 1, rank: int = 0, count: int = 1) -> None:
        self.data, self.plan, self.accumulate = data, plan, accumulate
        self.rank, self.count = rank, count  # of `count` processes this one takes every count-th example of a batch

    def steps_in(self, epoch: int) -> int:
        """Optimizer steps in an epoch: always the same with a fixed count, a little different with a budget."""
        size = self.plan.size
        batches = -(-len(self.plan.lengths) // size) if size else len(self.plan.epoch(epoch))
        return -(-batches // self.accumulate)

    def share(self, indices: Sequence[int], epoch: int) -> Batch:
        """This process's part of a batch. Of a batch with fewer examples than there are processes some get none: they
        take part with one that does not count, since all must go through the model together."""
        mine = indices[self.rank :: self.count]
        return self.collate(mine, epoch) if mine else Batch(self.data.collate(indices[:1], epoch), (), 0, 0)

    def collate(self, indices: Sequence[int], epoch: int) -> Batch:
        inputs = self.data.collate(indices, epoch)
        # (B, T), true where a token is real; without it an example counts as one
        real = inputs.get("padding", inputs.get("attention_mask"))
        tokens, positions = (int(real.sum()), real.numel()) if real is not None else (len(indices),) * 2
        return Batch(inputs, tuple(indices), tokens, positions)

    def stream(self, epoch: int, start: int) -> Iterator[tuple[list[Batch], tuple[int, int]]]:
        """The batches of one optimizer step after the other, each with the place that comes after it."""
        while True:
            plan = self.plan.epoch(epoch)
            for first in range(start, len(plan), self.accumulate):
                part = plan[first : first + self.accumulate]
                after = first + len(part)
                place = (epoch, after) if after < len(plan) else (epoch + 1, 0)
                yield [self.share(indices, epoch) for indices in part], place
            epoch, start = epoch + 1, 0

    def once(self) -> Iterator[Batch]:
        """Every example once, in no particular order: for evaluation."""
        for indices in self.plan.epoch(0, shuffle=False):
            yield self.collate(indices, 0)

    def longest(self, count: int) -> Batch:
        """A batch of the `count` longest examples (repeated if need be): the worst case for memory."""
        order = np.argsort(-np.asarray(self.plan.lengths), kind="stable")
        return self.collate([int(order[n % len(order)]) for n in range(count)], 0)
