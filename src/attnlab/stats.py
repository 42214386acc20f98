"""Intervals for the numbers the lab reports."""

from __future__ import annotations

import math
from dataclasses import dataclass

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Proportion:
    """`right` out of `count`, with a 95% interval after Wilson (1927), which holds near 0 and 1 as well."""

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
