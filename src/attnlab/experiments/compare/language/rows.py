"""A variant of a language model: besides its losses, its curve, its future, and texts longer than it was trained on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.experiments.compare.results import Row
from attnlab.jobs.language import LENGTHS_FILE
from attnlab.runs import read_metrics
from attnlab.stats.intervals import Mean, paired_difference

LEAK = 0.02
"""Nats by which prefixes must cost more than one pass before that alone is called seeing the future: 16 bits
and other kernels for other lengths make a little difference to everybody."""


@dataclass(frozen=True)
class Curve:
    """Validation loss over a run: at each evaluation the steps, the mean seconds, the losses over seeds."""

    steps: list[int]
    seconds: list[float]
    losses: list[Mean]


@dataclass(frozen=True)
class LanguageRow(Row):
    audit: str | None = None
    curve: Curve = field(default_factory=lambda: Curve([], [], []))
    lengths: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)  # by seed, by length

    @property
    def gap(self) -> Mean:
        """How much more a token costs when the future is hidden, on the same blocks."""
        return paired_difference(self.by_seed("prefix_loss"), self.by_seed("sample_loss"))

    @property
    def sees_future(self) -> str | None:
        """The evidence, or None."""
        if self.audit is None and self.gap.count and self.gap.mean > LEAK:
            return (
                f"hiding the future raises its loss by {self.gap.mean:.3f}, though the audit of its mixer found nothing"
            )
        return self.audit

    @property
    def objection(self) -> str | None:
        return self.sees_future

    def at_length(self, length: int) -> Mean:
        return Mean(tuple(found[length]["loss"] for found in self.lengths.values() if "loss" in found[length]))

    def by_position(self, length: int) -> list[Mean]:
        found = [seed[length]["by_position"] for seed in self.lengths.values() if "by_position" in seed[length]]
        return [Mean(tuple(values)) for values in zip(*found, strict=True)]


def curve_of(paths: dict[int, Path], runs: dict[int, dict[str, float]]) -> Curve:
    """The evaluations that all seeds have; seconds follow from the tokens read and the measured pace."""
    lines = {
        seed: {line["step"]: line for line in read_metrics(path / "metrics.jsonl") if line["split"] == "dev"}
        for seed, path in paths.items()
    }
    steps = sorted(set.intersection(*map(set, lines.values()))) if lines else []
    seconds = [
        [line[step]["tokens"] / runs[seed]["tokens_per_second"] for seed, line in lines.items()] for step in steps
    ]
    losses = [Mean(tuple(line[step]["loss"] for line in lines.values())) for step in steps]
    return Curve(steps, [sum(each) / len(each) for each in seconds], losses)


def lengths_of(path: Path) -> dict[int, dict[str, Any]]:
    file = path / LENGTHS_FILE
    if not file.exists():
        return {}
    return {int(length): found for length, found in json.loads(file.read_text(encoding="utf-8")).items()}
