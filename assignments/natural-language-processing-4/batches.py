"""Batches by number: number n is the same texts whenever it is asked for, so training can resume anywhere.

Texts of similar length go together and are padded to the longest of their batch, not to max_seq_length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

WINDOW = 50  # batches; within so many texts, those of similar length are put together

Inputs = dict[str, Tensor]


class Texts(Protocol):
    """A set of texts that can be batched."""

    @property
    def lengths(self) -> Sequence[int]: ...

    def collate(self, indices: Sequence[int]) -> Inputs:
        """Some of the texts as padded tensors by the names of a model's arguments."""
        ...


class Loader:
    """An endless sequence of batches: every epoch has all texts once, in a new order."""

    def __init__(self, texts: Texts, size: int, seed: int, device: torch.device) -> None:
        self.texts, self.size, self.seed, self.device = texts, size, seed, device
        self.per_epoch = -(-len(texts.lengths) // size)
        self._plan: tuple[int, list[list[int]]] = (-1, [])

    def __getitem__(self, number: int) -> Inputs:
        epoch, place = divmod(number, self.per_epoch)
        if self._plan[0] != epoch:
            self._plan = epoch, self.plan(epoch)
        return to(self.texts.collate(self._plan[1][place]), self.device)

    def plan(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch as indices of texts, from the seed and the epoch alone."""
        draw = torch.Generator().manual_seed((self.seed << 20) + epoch)
        order = torch.randperm(len(self.texts.lengths), generator=draw).tolist()
        window = WINDOW * self.size
        for start in range(0, len(order), window):
            order[start : start + window] = sorted(order[start : start + window], key=self.texts.lengths.__getitem__)
        batches = [order[start : start + self.size] for start in range(0, len(order), self.size)]
        return [batches[n] for n in torch.randperm(len(batches), generator=draw).tolist()]


def once(texts: Texts, size: int, device: torch.device) -> Iterator[tuple[list[int], Inputs]]:
    """Every text once, by length, with its index: for evaluation."""
    order = sorted(range(len(texts.lengths)), key=texts.lengths.__getitem__)
    for start in range(0, len(order), size):
        indices = order[start : start + size]
        yield indices, to(texts.collate(indices), device)


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Rows of different lengths as (B, T), filled with `value` at the right."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])


def attention_mask(rows: Sequence[Sequence[int]]) -> Tensor:
    """(B, T): 1 for pieces, 0 for padding."""
    return pad([[1] * len(row) for row in rows], 0)


def to(inputs: Inputs, device: torch.device) -> Inputs:
    return {name: tensor.to(device) for name, tensor in inputs.items()}
