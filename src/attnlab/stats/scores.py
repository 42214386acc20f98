"""How well classes were told apart: accuracy, F1 by class and on average, the confusion matrix, collapse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

NEARLY_ALL = 0.98
"""Share of inputs given one class from which on a classifier counts as collapsed ..."""
NOTHING_GAINED = 0.01
"""... if its accuracy is no more than this above always saying the most common class."""


@dataclass(frozen=True)
class ClassScore:
    """One class against the rest; a share of nothing is 0."""

    precision: float
    recall: float
    f1: float
    count: int


@dataclass(frozen=True)
class Scores:
    """What a classifier said about a set: logits (N, K) and the right classes (N,)."""

    logits: Tensor
    labels: Tensor

    @cached_property
    def said(self) -> Tensor:
        return self.logits.argmax(-1)

    @property
    def accuracy(self) -> float:
        return float((self.said == self.labels).double().mean())

    @property
    def loss(self) -> float:
        return float(F.cross_entropy(self.logits.double(), self.labels))

    @cached_property
    def confusion(self) -> Tensor:
        """(K, K): rows are the right class, columns what was said."""
        classes = self.logits.shape[1]
        return torch.bincount(self.labels * classes + self.said, minlength=classes**2).view(classes, classes)

    def by_class(self) -> list[ClassScore]:
        return by_class(self.confusion)

    @property
    def macro_f1(self) -> float:
        return macro_f1(self.confusion)

    @property
    def favourite(self) -> tuple[int, float]:
        """The class that is said most often, and for what share of the inputs."""
        counts = self.confusion.sum(0)
        return int(counts.argmax()), float(counts.max() / counts.sum())

    @property
    def majority(self) -> float:
        """The accuracy of always saying the most common class."""
        return float(self.confusion.sum(1).max() / self.confusion.sum())

    @property
    def collapsed(self) -> bool:
        """Nearly everything is called the same, and nothing is gained over the most common class."""
        return self.favourite[1] >= NEARLY_ALL and self.accuracy <= self.majority + NOTHING_GAINED

    def summary(self) -> dict[str, float]:
        return {"accuracy": self.accuracy, "macro_f1": self.macro_f1, "loss": self.loss}


def by_class(confusion: Tensor) -> list[ClassScore]:
    """Every class against the rest, from counts (K, K)."""
    rights, saids, theres = confusion.diagonal().tolist(), confusion.sum(0).tolist(), confusion.sum(1).tolist()
    return [
        ClassScore(
            right / said if said else 0.0,
            right / there if there else 0.0,
            2 * right / (said + there) if right else 0.0,
            int(there),
        )
        for right, said, there in zip(rights, saids, theres, strict=True)
    ]


def macro_f1(confusion: Tensor) -> float:
    """The mean of F1 over the classes that are in the set."""
    there = [score.f1 for score in by_class(confusion) if score.count]
    return sum(there) / len(there)
