"""What a finished run is judged by: the one thing a comparison asks of a kind of job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
