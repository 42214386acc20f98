"""What a comparison found, read from its cells: means with intervals, paired differences, who sees the future."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.compare.cells import Cell, Variant, variants
from attnlab.compare.config import CompareConfig
from attnlab.jobs.language import LENGTHS_FILE
from attnlab.runs import is_run, read_metrics, read_record, read_status
from attnlab.stats import Mean, paired_difference

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
class Row:
    """One variant: its finished runs by seed, and what is wrong with it."""

    variant: Variant
    runs: dict[int, dict[str, float]]
    failures: dict[int, str]
    audit: str | None = None
    parameters: int = 0
    steps: int = 0
    curve: Curve = field(default_factory=lambda: Curve([], [], []))
    lengths: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)  # by seed, by length

    @property
    def label(self) -> str:
        return self.variant.label

    def by_seed(self, name: str) -> dict[int, float]:
        return {seed: run[name] for seed, run in self.runs.items() if name in run}

    def mean(self, name: str) -> Mean:
        return Mean(tuple(self.by_seed(name).values()))

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
    def comparable(self) -> bool:
        return bool(self.runs) and self.sees_future is None

    def at_length(self, length: int) -> Mean:
        return Mean(tuple(found[length]["loss"] for found in self.lengths.values() if "loss" in found[length]))

    def by_position(self, length: int) -> list[Mean]:
        found = [seed[length]["by_position"] for seed in self.lengths.values() if "by_position" in seed[length]]
        return [Mean(tuple(values)) for values in zip(*found, strict=True)]


@dataclass(frozen=True)
class Results:
    config: CompareConfig
    rows: list[Row]
    record: dict[str, Any]  # of the comparison: command, machine, versions
    data: dict[str, Any]

    @property
    def finished(self) -> list[Row]:
        return [row for row in self.rows if row.runs]

    @property
    def failed(self) -> list[str]:
        return [row.label for row in self.rows if not row.runs]

    @property
    def reference(self) -> Row | None:
        """The first variant, or the first that can be compared with."""
        return next((row for row in self.rows if row.comparable), None)

    @property
    def ranked(self) -> bool:
        """One seed says nothing about the next: without an interval there is no order."""
        return any(len(row.runs) > 1 for row in self.rows)

    @property
    def ordered(self) -> list[Row]:
        """By validation loss where that is allowed; then those with a single run, that see the future, that failed."""
        if not self.ranked:
            return self.rows

        def place(row: Row) -> tuple[bool, bool, bool, float]:
            return not row.runs, not row.comparable, len(row.runs) < 2, _last_if_nan(row.mean("dev_loss").mean)

        return sorted(self.rows, key=place)

    def difference(self, row: Row, name: str = "dev_loss") -> Mean | None:
        """To the reference, seed by seed; None for the reference itself."""
        reference = self.reference
        if reference is None or row is reference or not row.runs:
            return None
        return paired_difference(row.by_seed(name), reference.by_seed(name))


def _last_if_nan(value: float) -> float:
    return math.inf if math.isnan(value) else value


def gather(root: Path, config: CompareConfig) -> Results:
    """Everything that is finished in a comparison's folder."""
    record = read_record(root)
    rows: list[Row] = []
    data: dict[str, Any] = {}
    for variant in variants(config):
        known = record.get("variants", {}).get(variant.label, {})
        paths = {seed: Cell(variant, seed).path(root) for seed in range(config.compare.seeds)}
        paths = {seed: p for seed, p in paths.items() if is_run(p) and read_status(p)["state"] == "finished"}
        records = {seed: read_record(path) for seed, path in paths.items()}
        runs = {seed: found["results"] | {"seconds": found["training"]["seconds"]} for seed, found in records.items()}
        first = next(iter(records.values()), {})
        data = data or first.get("data", {})
        failures = {int(seed): reason for seed, reason in known.get("failures", {}).items() if int(seed) not in runs}
        rows.append(Row(
            variant, runs, failures, known.get("future"), first.get("parameters", 0), known.get("steps", 0),
            _curve(paths, runs), {seed: _lengths(path) for seed, path in paths.items() if _lengths(path)},
        ))  # fmt: skip
    return Results(config, rows, record, data)


def _curve(paths: dict[int, Path], runs: dict[int, dict[str, float]]) -> Curve:
    """The evaluations that all seeds have; seconds follow from the tokens read and the measured pace."""
    lines = {seed: {line["step"]: line for line in read_metrics(path / "metrics.jsonl") if line["split"] == "dev"}
             for seed, path in paths.items()}  # fmt: skip
    steps = sorted(set.intersection(*map(set, lines.values()))) if lines else []
    seconds = [[line[step]["tokens"] / runs[seed]["tokens_per_second"] for seed, line in lines.items()]
               for step in steps]  # fmt: skip
    losses = [Mean(tuple(line[step]["loss"] for line in lines.values())) for step in steps]
    return Curve(steps, [sum(each) / len(each) for each in seconds], losses)


def _lengths(path: Path) -> dict[int, dict[str, Any]]:
    file = path / LENGTHS_FILE
    if not file.exists():
        return {}
    return {int(length): found for length, found in json.loads(file.read_text(encoding="utf-8")).items()}
