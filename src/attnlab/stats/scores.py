"""Scores of a classifier: accuracy, F1 per class and on average, the confusion matrix, collapse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

NEARLY_ALL = 0.98
"""A classifier that gives at least this share of the inputs one class counts as collapsed ..."""
NOTHING_GAINED = 0.01
"""... if its accuracy is at most this much above that of the most common class."""
DRAWS = 2000


@dataclass(frozen=True)
class ClassScore:
    """One class against the rest; 0/0 counts as 0."""

    precision: float
    recall: float
    f1: float
    count: int


@dataclass(frozen=True)
class Scores:
    """The predictions of a classifier on a set: logits (N, K) and the right classes (N,)."""

    logits: Tensor
    labels: Tensor

    @cached_property
    def predicted(self) -> Tensor:
        return self.logits.argmax(-1)

    @property
    def accuracy(self) -> float:
        return float((self.predicted == self.labels).double().mean())

    @property
    def loss(self) -> float:
        return float(F.cross_entropy(self.logits.double(), self.labels))

    @cached_property
    def confusion(self) -> Tensor:
        """(K, K): rows are the right class, columns the predicted one."""
        classes = self.logits.shape[1]
        return torch.bincount(self.labels * classes + self.predicted, minlength=classes**2).view(classes, classes)

    def by_class(self) -> list[ClassScore]:
        return by_class(self.confusion)

    @property
    def macro_f1(self) -> float:
        return macro_f1(self.confusion)

    @property
    def favourite(self) -> tuple[int, float]:
        """The class that is predicted most often, and its share of the inputs."""
        counts = self.confusion.sum(0)
        return int(counts.argmax()), float(counts.max() / counts.sum())

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most common class."""
        return float(self.confusion.sum(1).max() / self.confusion.sum())

    @property
    def collapsed(self) -> bool:
        """Whether nearly all inputs get one class and nothing is gained over the most common class."""
        return self.favourite[1] >= NEARLY_ALL and self.accuracy <= self.majority + NOTHING_GAINED

    def summary(self) -> dict[str, float]:
        return {"accuracy": self.accuracy, "macro_f1": self.macro_f1, "loss": self.loss}


def by_class(confusion: Tensor) -> list[ClassScore]:
    """Every class against the rest, from counts (K, K)."""
    right_counts = confusion.diagonal().tolist()
    predicted_counts, true_counts = confusion.sum(0).tolist(), confusion.sum(1).tolist()
    return [
        ClassScore(
            right / predicted if predicted else 0.0,
            right / true if true else 0.0,
            2 * right / (predicted + true) if right else 0.0,
            int(true),
        )
        for right, predicted, true in zip(right_counts, predicted_counts, true_counts, strict=True)
    ]


def macro_f1(confusion: Tensor) -> float:
    """The mean of F1 over the classes that are in the set."""
    scores = [score.f1 for score in by_class(confusion) if score.count]
    return sum(scores) / len(scores)


def macro_f1_interval(confusion: np.ndarray, draws: int = DRAWS) -> tuple[float, float]:
    """95% percentiles over examples drawn with replacement, which is a multinomial draw of the cells."""
    count = int(confusion.sum())
    cells = np.random.default_rng(0).multinomial(count, confusion.ravel() / count, size=draws)
    drawn = [macro_f1(torch.from_numpy(one.reshape(confusion.shape))) for one in cells]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)
