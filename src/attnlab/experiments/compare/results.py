"""What a comparison found, read from its cells: means with intervals, and paired differences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.jobs.measures import Measure, ranking
from attnlab.experiments.compare.cells import Cell, Variant, seeds_of, variants
from attnlab.jobs.registry import config_of
from attnlab.runs import is_run, read_record, read_status
from attnlab.stats.intervals import Mean, paired_difference


@dataclass(frozen=True)
class Row:
    """One variant: its finished runs by seed, and what is wrong with it."""

    variant: Variant
    runs: dict[int, dict[str, Any]]
    failures: dict[int, str]
    parameters: int = 0
    steps: int = 0

    @classmethod
    def of(cls, variant: Variant, records: dict[int, dict[str, Any]], known: Mapping[str, Any], **more: Any) -> Any:
        runs = {seed: found["results"] | {"seconds": found["training"]["seconds"]} for seed, found in records.items()}
        failures = {int(seed): reason for seed, reason in known.get("failures", {}).items() if int(seed) not in runs}
        first: dict[str, Any] = next(iter(records.values()), {})
        return cls(variant, runs, failures, first.get("parameters", 0), first.get("steps", 0), **more)

    @property
    def label(self) -> str:
        return self.variant.label

    def by_seed(self, name: str) -> dict[int, float]:
        return {seed: run[name] for seed, run in self.runs.items() if name in run}

    def mean(self, name: str) -> Mean:
        return Mean(tuple(self.by_seed(name).values()))

    @property
    def objection(self) -> str | None:
        """Why its numbers cannot be set beside the others', or None."""
        return None

    @property
    def comparable(self) -> bool:
        return bool(self.runs) and self.objection is None


@dataclass(frozen=True)
class Results:
    config: Any
    rows: list[Any]  # Row, or what the subject makes of it
    record: dict[str, Any]  # of the comparison: command, machine, versions
    data: dict[str, Any]

    @property
    def measure(self) -> Measure:
        """What the variants are ranked by."""
        return ranking(config_of(self.config.compare.job).headlines)

    @property
    def finished(self) -> list[Any]:
        return [row for row in self.rows if row.runs]

    @property
    def failed(self) -> list[str]:
        return [row.label for row in self.rows if not row.runs]

    @property
    def reference(self) -> Any:
        """The first variant, or the first that can be compared with; None if there is none."""
        return next((row for row in self.rows if row.comparable), None)

    def base(self, row: Row) -> Any:
        """What a row is compared with: the first arm with all else the same; where there are no arms, the reference."""
        arms = list(self.config.compare.arms)
        if len(arms) < 2:
            return self.reference
        wanted = {choice for choice in row.variant.choices if choice not in arms} | {arms[0]}
        return next((each for each in self.rows if each.comparable and set(each.variant.choices) == wanted), None)

    @property
    def base_name(self) -> str:
        """How that is called."""
        if len(self.config.compare.arms) > 1 and any(len(row.variant.choices) > 1 for row in self.rows):
            return str(next(iter(self.config.compare.arms)))
        return self.reference.label if self.reference else ""

    @property
    def ranked(self) -> bool:
        """One seed says nothing about the next: without an interval there is no order."""
        return any(len(row.runs) > 1 for row in self.rows)

    @property
    def ordered(self) -> list[Any]:
        """The best first where that is allowed; then those with a single run, with an objection, that failed."""
        if not self.ranked:
            return self.rows

        def place(row: Row) -> tuple[bool, bool, bool, float]:
            value = -self.measure.sign * row.mean(self.measure.name).mean
            return not row.runs, not row.comparable, len(row.runs) < 2, math.inf if math.isnan(value) else value

        return sorted(self.rows, key=place)

    def difference(self, row: Row, name: str | None = None) -> Mean | None:
        """To what it is compared with, seed by seed; None for that itself."""
        reference, name = self.base(row), name or self.measure.name
        if reference is None or row is reference or not row.runs:
            return None
        return paired_difference(row.by_seed(name), reference.by_seed(name))


def gather(root: Path, config: Any) -> Results:
    """Everything that is finished in a comparison's folder."""
    from attnlab.experiments.compare.subjects import subject_of

    record, subject = read_record(root), subject_of(config)
    rows: list[Row] = []
    data: dict[str, Any] = {}
    for variant in variants(config):
        known = record.get("variants", {}).get(variant.label, {})
        paths = {seed: Cell(variant, seed).path(root) for seed in seeds_of(config, variant)}
        paths = {seed: p for seed, p in paths.items() if is_run(p) and read_status(p)["state"] == "finished"}
        records = {seed: read_record(path) for seed, path in paths.items()}
        data = data or next(iter(records.values()), {}).get("data", {})
        rows.append(subject.row(variant, paths, records, known))
    return Results(config, rows, record, data)
