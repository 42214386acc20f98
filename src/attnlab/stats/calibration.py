"""How far a confidence can be trusted: reliability, separation, and the effect of abstaining.

All functions take confidences in [0, 1] and, for each, whether it belongs to a good case (the answer is right, or the
person is known).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.stats.intervals import Proportion

BINS = 10
DRAWS = 1000


@dataclass(frozen=True)
class Bin:
    """The answers with a confidence in [low, high): their mean confidence, and how many are right."""

    low: float
    high: float
    count: int
    right: int
    confidence: float

    @property
    def accuracy(self) -> float:
        return self.right / self.count


def bins(confidence: Sequence[float], right: Sequence[bool]) -> list[Bin]:
    """Ten bins of equal width, without the empty ones; confidence 1 belongs to the last."""
    c, r = np.asarray(confidence, dtype=float), np.asarray(right, dtype=bool)
    place = np.minimum((c * BINS).astype(int), BINS - 1)
    found = []
    for number in sorted(set(place.tolist())):
        inside = place == number
        mean, count = float(c[inside].mean()), int(inside.sum())
        found.append(Bin(number / BINS, (number + 1) / BINS, count, int(r[inside].sum()), mean))
    return found


def calibration_error(groups: Sequence[Bin]) -> float:
    """Σ n_b/n |accuracy_b - confidence_b|: the expected calibration error. Naeini, Cooper and Hauskrecht 2015."""
    total = sum(group.count for group in groups)
    return sum(group.count * abs(group.accuracy - group.confidence) for group in groups) / total


def area(confidence: Sequence[float], good: Sequence[bool]) -> float:
    """The area under the ROC curve, P(c_good > c_bad) + P(c_good = c_bad)/2; nan without good or bad cases."""
    return _area(np.asarray(confidence, dtype=float), np.asarray(good, dtype=bool))


def _area(c: NDArray[np.float64], good: NDArray[np.bool_]) -> float:
    from scipy.stats import rankdata

    n, m = int(good.sum()), int((~good).sum())
    if n == 0 or m == 0:
        return math.nan
    return float((rankdata(c)[good].sum() - n * (n + 1) / 2) / (n * m))


@dataclass(frozen=True)
class Area:
    """An area under the ROC curve with a 95% interval: percentiles over questions drawn with replacement."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, confidence: Sequence[float], good: Sequence[bool], seed: int = 0) -> Area:
        c, g = np.asarray(confidence, dtype=float), np.asarray(good, dtype=bool)
        random = np.random.default_rng(seed)
        drawn = [_area(c[rows], g[rows]) for rows in (random.integers(0, len(c), len(c)) for _ in range(DRAWS))]
        kept = [value for value in drawn if not math.isnan(value)]
        low, high = np.percentile(kept, [2.5, 97.5]).tolist() if kept else (math.nan, math.nan)
        return cls(_area(c, g), low, high)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "undefined: all cases are of one kind"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def coverage(confidence: Sequence[float], right: Sequence[bool]) -> tuple[list[float], list[float]]:
    """Share answered and accuracy among those, when only the k most confident are answered, for k = 1 … n.

    Answers with the same confidence are kept or dropped together, because no threshold separates them.
    """
    c, r = np.asarray(confidence, dtype=float), np.asarray(right, dtype=bool)
    order = np.argsort(-c, kind="stable")
    last = np.append(c[order][1:] != c[order][:-1], True)  # the last of those with its confidence
    answered = np.arange(1, len(c) + 1)[last]
    return (answered / len(c)).tolist(), (np.cumsum(r[order])[last] / answered).tolist()


@dataclass(frozen=True)
class Abstention:
    """The effect on a set of answers of answering "I don't know" below a threshold."""

    threshold: float
    questions: int
    answered: int
    right: int
    wrong_avoided: int
    right_lost: int

    @classmethod
    def at(cls, threshold: float, confidence: Sequence[float], right: Sequence[bool]) -> Abstention:
        c, r = np.asarray(confidence, dtype=float), np.asarray(right, dtype=bool)
        kept = c >= threshold
        return cls(
            threshold, len(c), int(kept.sum()), int((kept & r).sum()), int((~kept & ~r).sum()), int((~kept & r).sum())
        )

    @property
    def accuracy(self) -> Proportion:
        """Accuracy among the given answers."""
        return Proportion(self.right, self.answered)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"accuracy": self.accuracy.share, "interval": list(self.accuracy.interval)}


TOWARDS_ONE = 2.0
"""How strongly a temperature is held at 1: as if log T had been drawn with a deviation of a half. Few rows of dev, all
of them right, would otherwise make every answer certain."""


def temperature(logits: NDArray[np.float64], labels: Sequence[int]) -> float:
    """T of softmax(logits / T) with the highest likelihood of the labels. Guo et al. 2017; answers stay the same.

    logits (N, K). The minimum over log T of Σ_i -log p_i[y_i] + 2 (log T)².
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    z, y = np.asarray(logits, dtype=float), np.asarray(labels)

    def loss(log_t: float) -> float:
        chosen = log_softmax(z / math.exp(log_t), axis=1)[np.arange(len(y)), y]
        return float(-chosen.sum() + TOWARDS_ONE * log_t**2)

    return math.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x)


def best_threshold(score: Sequence[float], good: Sequence[bool]) -> float:
    """The score from which on a case is best taken for a good one: the largest sum of the share of good cases at or
    above it and of bad cases below it (Youden 1950). It lies halfway to the next lower score.
    """
    s, g = np.asarray(score, dtype=float), np.asarray(good, dtype=bool)
    values = np.unique(s)
    above = [(s[g] >= value).mean() - (s[~g] >= value).mean() for value in values]
    best = int(np.argmax(above))
    return float(values[best] if best == 0 else (values[best - 1] + values[best]) / 2)


def threshold_for(accuracy: float, confidence: Sequence[float], right: Sequence[bool]) -> float | None:
    """The lowest threshold with at least this accuracy above it; None if no threshold reaches it."""
    c = np.sort(np.asarray(confidence, dtype=float))[::-1]
    answered, reached = coverage(confidence, right)
    enough = [share for share, value in zip(answered, reached, strict=True) if value >= accuracy]
    return float(c[round(enough[-1] * len(c)) - 1]) if enough else None
