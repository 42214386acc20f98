"""From examples to batches: examples of similar length together, padded to the longest among them.

The order of an epoch depends only on the seed and the epoch's number, so a run can resume in the middle of an
epoch, and a random draw (a corrupted span, say) is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

IGNORE = -100  # a target that does not count
WINDOW = 50  # batches sorted together: enough for similar lengths, few enough to stay random


class Examples(Protocol):
    """A data set that can be batched."""

    @property
    def lengths(self) -> Sequence[int]:
        """Length of each example in tokens, by which batches are formed."""
        ...

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        """The examples as padded tensors; `epoch` seeds what is drawn at random."""
        ...


@dataclass(frozen=True)
class Batch:
    """Tensors for the model, and counts."""

    inputs: dict[str, Tensor]
    indices: tuple[int, ...]
    tokens: int  # without padding
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
        """The batches of an epoch, as lists of example indices."""
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
    """Rows of different lengths as one tensor (B, longest), padded at the right."""
    longest = max(len(row) for row in rows)
    out = torch.full((len(rows), longest), value, dtype=torch.long)
    for n, row in enumerate(rows):
        out[n, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return out


class Batches:
    """The batches of a data set, epoch after epoch, from any position."""

    def __init__(self, data: Examples, plan: BatchPlan, accumulate: int = 1, rank: int = 0, count: int = 1) -> None:
        self.data, self.plan, self.accumulate = data, plan, accumulate
        self.rank, self.count = rank, count  # of `count` processes this one takes every count-th example of a batch

    def steps_in(self, epoch: int) -> int:
        """Optimizer steps in an epoch: constant with a fixed count, varying a little with a budget of tokens."""
        size = self.plan.size
        batches = -(-len(self.plan.lengths) // size) if size else len(self.plan.epoch(epoch))
        return -(-batches // self.accumulate)

    def share(self, indices: Sequence[int], epoch: int) -> Batch:
        """This process's part of a batch. If it has fewer examples than processes, some get none: they use one that
        does not count, because all processes must run the model together."""
        share = indices[self.rank :: self.count]
        return self.collate(share, epoch) if share else Batch(self.data.collate(indices[:1], epoch), (), 0, 0)

    def collate(self, indices: Sequence[int], epoch: int) -> Batch:
        inputs = self.data.collate(indices, epoch)
        # (B, T), true where a token is real; without a mask an example counts as one
        real = inputs.get("padding", inputs.get("attention_mask"))
        tokens, positions = (int(real.sum()), real.numel()) if real is not None else (len(indices),) * 2
        return Batch(inputs, tuple(indices), tokens, positions)

    def stream(self, epoch: int, start: int) -> Iterator[tuple[list[Batch], tuple[int, int]]]:
        """The batches of one optimizer step after the other, each with the position (epoch, batch) after it."""
        while True:
            plan = self.plan.epoch(epoch)
            for first in range(start, len(plan), self.accumulate):
                part = plan[first : first + self.accumulate]
                after = first + len(part)
                place = (epoch, after) if after < len(plan) else (epoch + 1, 0)
                yield [self.share(indices, epoch) for indices in part], place
            epoch, start = epoch + 1, 0

    def once(self) -> Iterator[Batch]:
        """Every example once, for evaluation."""
        for indices in self.plan.epoch(0, shuffle=False):
            yield self.collate(indices, 0)

    def longest(self, count: int) -> Batch:
        """A batch of the `count` longest examples (repeated if need be): the worst case for memory."""
        order = np.argsort(-np.asarray(self.plan.lengths), kind="stable")
        return self.collate([int(order[n % len(order)]) for n in range(count)], 0)
