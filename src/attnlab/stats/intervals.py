"""Intervals for the numbers the lab reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
        return student_95(self.count - 1) * self.deviation / math.sqrt(self.count)

    @property
    def interval(self) -> tuple[float, float] | None:
        half = self.half_width
        return None if half is None else (self.mean - half, self.mean + half)

    @property
    def differs_from_zero(self) -> bool:
        """Whether the interval excludes zero; never for a single run."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


@dataclass(frozen=True)
class Folds(Mean):
    """The mean over the K folds of a cross-validation: ± t·s·√(1/K + 1/(K - 1)), K - 1 degrees of freedom.

    Any two folds share most of their training rows, so their scores are not independent and s/√K is too small. Nadeau
    and Bengio 2003, "Inference for the Generalization Error", add the test rows over the training rows: 1/(K - 1).
    """

    @property
    def half_width(self) -> float | None:
        if self.deviation is None:
            return None
        factor = math.sqrt(1 / self.count + 1 / (self.count - 1))
        return student_95(self.count - 1) * self.deviation * factor


@dataclass(frozen=True)
class PositiveMean(Mean):
    """The mean of what is never below 0, such as a speed: Student's interval of the logarithms, and its middle.

    The middle is the geometric mean, and both ends are above 0 however few the runs and however far apart.
    """

    @property
    def _logarithms(self) -> Mean:
        return Mean(tuple(math.log(value) for value in self.values))

    @property
    def mean(self) -> float:
        return math.exp(self._logarithms.mean)

    @property
    def half_width(self) -> None:
        """The interval is not symmetric."""
        return

    @property
    def interval(self) -> tuple[float, float] | None:
        ends = self._logarithms.interval
        return None if ends is None else (_exp(ends[0]), _exp(ends[1]))

    def text(self, form: str) -> str:
        """90,000 (80,000 to 101,000), or the number alone for a single run."""
        if not self.count:
            return "not measured"
        ends = self.interval
        return f"{self.mean:{form}}" + (f" ({ends[0]:{form}} to {ends[1]:{form}})" if ends else "")


def _exp(logarithm: float) -> float:
    return math.exp(min(logarithm, 700.0))


def student_95(degrees: int) -> float:
    """t such that 95% of Student's distribution lie between -t and t."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(degrees, 0.975))


@dataclass(frozen=True)
class ClusterMean:
    """The mean per item of items that come in clusters, such as tokens in documents: R = Σ totals / Σ sizes.

    Items of a cluster are alike, so the 95% interval is over the n clusters, a linearised ratio (Cochran 1977):
    R ± t·√(n/(n - 1) · Σ (total - R·size)²) / Σ sizes, n - 1 degrees of freedom. With equal sizes it is that of `Mean`.
    """

    totals: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.totals) / sum(self.sizes)

    @property
    def interval(self) -> tuple[float, float] | None:
        """None for a single cluster."""
        count, mean = len(self.totals), self.mean
        if count < 2:
            return None
        squares = math.fsum((total - mean * size) ** 2 for total, size in zip(self.totals, self.sizes, strict=True))
        half = student_95(count - 1) * math.sqrt(squares * count / (count - 1)) / sum(self.sizes)
        return mean - half, mean + half


def paired_difference(values: Mapping[int, float], reference: Mapping[int, float]) -> Mean:
    """The mean of value - reference over the seeds that both have.

    Runs with the same seed saw the same data in the same order, so its effect on both cancels.
    """
    shared = sorted(set(values) & set(reference))
    return Mean(tuple(values[seed] - reference[seed] for seed in shared))


@dataclass(frozen=True)
class Measure:
    """A number in a run's results. The first of a kind that is on dev ranks; the others stand beside it."""

    name: str  # its key in the results
    title: str
    split: Literal["train", "dev", "test"]
    better: Literal["higher", "lower"] = "higher"
    share: bool = True  # between 0 and 1, shown in per cent
    unit: str = ""
    baseline: str = ""  # the key of what a model that knows nothing would score

    @property
    def form(self) -> str:
        return ".1%" if self.share else ".3f"

    @property
    def sign(self) -> int:
        """+1 where more is better."""
        return 1 if self.better == "higher" else -1


ACCURACIES = (
    Measure("dev_accuracy", "dev accuracy", "dev", baseline="dev_baseline"),
    Measure("test_accuracy", "test accuracy", "test", baseline="test_baseline"),
)


def ranking(measures: tuple[Measure, ...]) -> Measure:
    """The measure that chooses: on dev, never on test."""
    return next(measure for measure in measures if measure.split == "dev")


def plus_minus(mean: Mean, form: str = ".3f") -> str:
    """1.234 ± 0.004, or the number alone for a single run."""
    if not mean.count:
        return "not measured"
    return f"{mean.mean:{form}}" + (f" ± {mean.half_width:{form.lstrip('+')}}" if mean.half_width is not None else "")


def plain(mean: Mean, by_seed: Mapping[int, float] | None = None) -> dict[str, Any]:
    """A mean as plain data for a JSON file."""
    values: dict[str, Any] = {"mean": mean.mean, "interval": mean.interval, "runs": mean.count}
    return values | ({"by_seed": dict(by_seed)} if by_seed else {})
