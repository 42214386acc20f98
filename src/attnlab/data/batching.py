"""From examples to batches: examples of similar length together, padded to the longest among them.

The order of an epoch depends only on the seed and the epoch's number, so a run can resume in the middle of an
epoch, and a random draw (a corrupted span, say) is always the same.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, overload

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from attnlab.distributed.team import shared

IGNORE = -100  # a target that does not count
WINDOW = 50  # batches sorted together: enough for similar lengths, few enough to stay random


Document = TypeVar("Document")
T = TypeVar("T")


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

    def pieces(self, count: int) -> list[Batch]:
        """Rows of similar length together, each piece cut after its longest row: the same targets, less padding.

        A batch without padding, or without a mask that marks it, is one piece.
        """
        real = self.inputs.get("padding", self.inputs.get("attention_mask"))  # (B, T)
        if count == 1 or real is None or self.tokens in (0, self.positions):
            return [self]
        lengths = real.long().sum(1)
        pieces = []
        for rows in torch.argsort(lengths, stable=True).tensor_split(min(count, len(lengths))):
            longest = int(lengths[rows].max())
            inputs = {
                name: tensor[rows, :longest] if tensor.shape[:2] == real.shape else tensor[rows]
                for name, tensor in self.inputs.items()
            }
            indices = tuple(self.indices[row] for row in rows.tolist())
            pieces.append(Batch(inputs, indices, int(lengths[rows].sum()), len(rows) * longest))
        return pieces

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

    def epoch(self, epoch: int, shuffle: bool = True) -> EpochBatches:
        """The batches of an epoch, as lists of example indices."""
        lengths = np.asarray(self.lengths)
        generator = np.random.default_rng([self.seed, epoch])
        order = generator.permutation(len(lengths)) if shuffle else np.arange(len(lengths))
        if self.by_length:
            order = np.concatenate([self._sorted(part, lengths) for part in self._windows(order)])
        starts = self._starts(order, lengths)
        places = list(range(len(starts)))
        if shuffle:
            generator.shuffle(places)
        return EpochBatches(order, np.asarray([*starts, len(order)]), np.asarray(places, np.int64))

    def _windows(self, order: np.ndarray) -> list[np.ndarray]:
        mean = max(1.0, float(np.mean(self.lengths)))
        window = WINDOW * (self.size or max(1, int((self.tokens or 1) / mean)))
        return [order[start : start + window] for start in range(0, len(order), window)] or [order]

    @staticmethod
    def _sorted(part: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return part[np.argsort(lengths[part], kind="stable")]  # stable: equal lengths stay shuffled

    def _starts(self, order: np.ndarray, lengths: np.ndarray) -> Sequence[int]:
        """Where each batch begins in the order."""
        if self.size:
            return range(0, len(order), self.size)
        starts: list[int] = []
        longest = 0
        for place, length in enumerate(lengths[order].tolist()):
            longest = max(longest, length)
            if not starts or longest * (place - starts[-1] + 1) > (self.tokens or 0):
                starts.append(place)
                longest = length
        return starts


class EpochBatches(Sequence[list[int]]):
    """The batches of an epoch: parts of one order, `starts` and end of each in it, taken in the order of `places`.

    A few numbers per batch, and not a list of lists: an epoch can have millions of batches.
    """

    def __init__(self, order: np.ndarray, starts: np.ndarray, places: np.ndarray) -> None:
        self.order, self.starts, self.places = order, starts, places

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, key: int) -> list[int]: ...

    @overload
    def __getitem__(self, key: slice) -> list[list[int]]: ...

    def __getitem__(self, key: int | slice) -> list[int] | list[list[int]]:
        if isinstance(key, slice):
            return [self[place] for place in range(*key.indices(len(self)))]
        place = int(self.places[key])
        return self.order[self.starts[place] : self.starts[place + 1]].tolist()


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Rows of different lengths as one tensor (B, longest), padded at the right."""
    longest = max(len(row) for row in rows)
    out = torch.full((len(rows), longest), value, dtype=torch.long)
    for n, row in enumerate(rows):
        out[n, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return out


class Batches:
    """The batches of a data set, epoch after epoch, from any position."""

    def __init__(
        self,
        data: Examples,
        plan: BatchPlan,
        accumulate: int = 1,
        rank: int = 0,
        count: int = 1,
        pieces: int = 1,
        workers: int = 0,
    ) -> None:
        self.data, self.plan, self.accumulate = data, plan, accumulate
        self.rank, self.count = rank, count  # of `count` processes this one takes every count-th example of a batch
        self.pieces, self.workers = pieces, workers

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
            firsts = range(start, len(plan), self.accumulate)
            for first, built in zip(firsts, self._built_ahead(plan, firsts, epoch), strict=True):
                after = first + self.accumulate
                yield built, (epoch, after) if after < len(plan) else (epoch + 1, 0)
            epoch, start = epoch + 1, 0

    def built(self, indices: Sequence[int], epoch: int) -> list[Batch]:
        """A batch as it is trained on: this process's share, in pieces."""
        return self.share(indices, epoch).pieces(self.pieces)

    def _built_ahead(self, plan: EpochBatches, firsts: range, epoch: int) -> Iterable[list[Batch]]:
        """The batches of each step, in order; with workers, built by them while the steps before are trained."""
        rows = _Steps(self, plan, firsts, epoch)
        if not self.workers or not firsts:
            return map(rows.__getitem__, range(len(firsts)))
        # A generator of its own: training would otherwise draw other numbers than without workers.
        return DataLoader(
            rows, batch_size=None, num_workers=self.workers, worker_init_fn=_worker, generator=torch.Generator()
        )

    def each(self, work: Callable[[Batch], T]) -> list[T]:
        """What `work` returns for every batch, with every example once; in an evaluation the processes share them."""
        return shared(self.plan.epoch(0, shuffle=False), lambda indices: work(self.collate(indices, 0)))

    def longest(self, count: int) -> Batch:
        """A batch of the `count` longest examples (repeated if need be): the worst case for memory."""
        order = np.argsort(-np.asarray(self.plan.lengths), kind="stable")
        return self.collate([int(order[n % len(order)]) for n in range(count)], 0)


class _Steps(Dataset[list[Batch]]):
    """The batches of each step of an epoch, built when they are asked for; `firsts` are the first of each step."""

    def __init__(self, batches: Batches, plan: EpochBatches, firsts: range, epoch: int) -> None:
        self.batches, self.plan, self.firsts, self.epoch = batches, plan, firsts, epoch

    def __len__(self) -> int:
        return len(self.firsts)

    def __getitem__(self, step: int) -> list[Batch]:
        first = self.firsts[step]
        part = self.plan[first : first + self.batches.accumulate]
        return [piece for indices in part for piece in self.batches.built(indices, self.epoch)]


def _worker(number: int) -> None:
    """A worker ends with the process that started it; Ctrl-C is for that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def split_documents(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """The documents for training and a random share for evaluation, both in their order."""
    order = np.random.default_rng([seed, 1]).permutation(len(documents))
    held_out = set(order[: round(share * len(documents))].tolist())
    train = [document for n, document in enumerate(documents) if n not in held_out]
    return train, [documents[n] for n in sorted(held_out)]
