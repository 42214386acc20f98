"""Intervals for the numbers the lab reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Proportion:
    """`right` out of `count`, with a 95% interval after Wilson (1927), which is also valid near 0 and 1."""

    right: int
    count: int

    @property
    def share(self) -> float:
        return self.right / self.count if self.count else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        if not self.count:
            return math.nan, math.nan
        n, p, z2 = self.count, self.share, NORMAL_95**2
        centre = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = NORMAL_95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.share:.1%} ({low:.1%} to {high:.1%})"


@dataclass(frozen=True)
class Mean:
    """The mean of a few runs, with a 95% interval after Student (1908): mean ± t·s/√n, n - 1 degrees of freedom.

    It is about the mean over seeds, with the same data and settings. One run has no interval.
    """

    values: tuple[float, ...]

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / self.count if self.values else math.nan

    @property
    def deviation(self) -> float | None:
        """s, with n - 1 in the denominator; None for a single run."""
        if self.count < 2:
            return None
        return math.sqrt(math.fsum((value - self.mean) ** 2 for value in self.values) / (self.count - 1))

    @property
    def half_width(self) -> float | None:
        if self.deviation is None:
            return None
        from scipy.special import stdtrit  # scipy.stats takes a second to import

        return float(stdtrit(self.count - 1, 0.975)) * self.deviation / math.sqrt(self.count)

    @property
    def interval(self) -> tuple[float, float] | None:
        half = self.half_width
        return None if half is None else (self.mean - half, self.mean + half)

    @property
    def differs_from_zero(self) -> bool:
        """Whether the interval excludes zero; never for a single run."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


def paired_difference(values: Mapping[int, float], reference: Mapping[int, float]) -> Mean:
    """The mean of value - reference over the seeds that both have.

    Runs with the same seed saw the same data in the same order, so its effect on both cancels.
    """
    shared = sorted(set(values) & set(reference))
    return Mean(tuple(values[seed] - reference[seed] for seed in shared))
