"""The numbers behind the figures of experiments: by label, with means over seeds. They know nothing of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from attnlab.stats.intervals import Mean


class MeasuredRow(Protocol):
    """One set of settings with what its runs measured."""

    @property
    def label(self) -> str: ...

    @property
    def objection(self) -> str | None:
        """Why its numbers cannot be compared with the others'."""
        ...

    @property
    def reason(self) -> str:
        """Why there is no run of it; empty if there is one."""
        ...

    def mean(self, name: str) -> Mean: ...

    def by_seed(self, name: str) -> Mapping[int, float]: ...


@dataclass(frozen=True)
class LossCurve:
    """Validation loss over a run: at each evaluation the steps, the mean seconds, the losses over seeds."""

    label: str
    steps: list[int]
    seconds: list[float]
    losses: list[Mean]
    leaks: bool = False


@dataclass(frozen=True)
class FutureGap:
    """Perplexity in one pass and prefix by prefix, one pair per run."""

    label: str
    pairs: list[tuple[float, float]]
    leaks: bool = False


@dataclass(frozen=True)
class LengthLosses:
    """Loss by the length of the test blocks, and by position in the longest that can be read."""

    label: str
    by_length: Mapping[int, Mean]
    by_position: list[Mean]


@dataclass(frozen=True)
class AccuracyCurve:
    """Accuracy over a run: at each evaluation the epochs, and by split the values over seeds."""

    title: str
    epochs: list[float]
    by_split: Mapping[str, list[Mean]]
