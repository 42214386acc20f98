"""What an experiment measured, read from its runs: means with intervals, paired differences, the best on dev."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from attnlab.config.axes import Axis
from attnlab.experiments.config import CompareConfig, SweepConfig
from attnlab.experiments.records import check_finished
from attnlab.jobs.registry import KINDS, Kind
from attnlab.runs import is_run, read_record, read_status
from attnlab.stats.intervals import Mean, Measure, PositiveMean, Proportion, paired_difference

WORST_FIRST = ("failed", "pruned", "running", "waiting", "finished")


@dataclass(frozen=True)
class ExperimentRow:
    """One set of settings with its runs: a variant of a comparison, a cell of a sweep."""

    label: str
    folder: str
    """Below the experiment's own: cells/... or trials/..."""
    settings: Mapping[str, Any]
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The results of its finished runs, by seed."""
    failures: dict[int, str] = field(default_factory=dict)
    """Why a seed has no result."""
    state: str = "finished"
    paths: dict[int, Path] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    """run.json of its first finished run."""
    decided: Mapping[str, Any] = field(default_factory=dict)
    """What was settled once, before its first run."""
    choices: tuple[str, ...] = ()
    objection: str | None = None
    """Why its numbers cannot be compared with the others'."""
    planned: int = 1
    """Number of seeds it is to be run with."""
    number: int = 0
    seconds: float = 0.0
    """In training steps, of all its runs."""

    def by_seed(self, name: str) -> dict[int, float]:
        return {seed: run[name] for seed, run in self.runs.items() if name in run}

    def mean(self, name: str) -> Mean:
        return Mean(tuple(self.by_seed(name).values()))

    def positive(self, name: str) -> PositiveMean:
        """The mean of a speed, a duration or a size."""
        return PositiveMean(tuple(self.by_seed(name).values()))

    @property
    def comparable(self) -> bool:
        return bool(self.runs) and self.objection is None

    @property
    def reason(self) -> str:
        """Why there is no run of it; empty if there is one."""
        return "" if self.runs else next(iter(self.failures.values()), "it was not run.")

    @property
    def parameters(self) -> int:  # a run with a frozen body counts the head alone
        return max(int(self.record.get("parameters", 0)), int(self.decided.get("parameters", 0)))

    @property
    def steps(self) -> int:
        return int(self.record.get("steps", 0))


def finished_runs(
    paths: Mapping[int, Path], measures: Sequence[str] = ()
) -> tuple[dict[int, Path], dict[int, dict[str, Any]], dict[str, Any]]:
    """Of run folders by seed those that are finished, the results of each, and the record of the first."""
    done = {seed: path for seed, path in paths.items() if is_run(path) and read_status(path)["state"] == "finished"}
    records = {seed: read_record(path) for seed, path in done.items()}
    for seed, record in records.items():
        check_finished(done[seed], record, measures)
    runs: dict[int, dict[str, Any]] = {}
    for seed, record in records.items():
        results = dict(record["results"])
        results["seconds"] = record["training"]["seconds"] + results.get("feature_seconds", 0.0)
        if record.get("peak_memory"):
            results["peak_memory"] = record["peak_memory"]
        runs[seed] = results
    return done, runs, next(iter(records.values()), {})


C = TypeVar("C", CompareConfig, SweepConfig)


@dataclass(frozen=True)
class Results(Generic[C]):
    """What a comparison and a sweep have in common."""

    config: C
    job: str
    rows: list[ExperimentRow]
    record: dict[str, Any]
    """Of the experiment: command, machine, versions."""
    data: dict[str, Any]
    """About the data, from the record of a run."""

    @property
    def kind(self) -> Kind:
        return KINDS[self.job]

    @property
    def measure(self) -> Measure:
        """What ranks: on dev, never on test."""
        return self.kind.chooses_by

    @property
    def on_test(self) -> list[Measure]:
        return [measure for measure in self.kind.measures if measure.split == "test"]

    def score(self, row: ExperimentRow) -> Mean:
        return row.mean(self.measure.name)

    def _worth(self, row: ExperimentRow) -> float:
        """Lower is better, whatever the measure."""
        value = -self.measure.sign * self.score(row).mean
        return math.inf if math.isnan(value) else value


@dataclass(frozen=True)
class ComparisonResults(Results[CompareConfig]):
    @property
    def finished(self) -> list[ExperimentRow]:
        return [row for row in self.rows if row.runs]

    @property
    def reference(self) -> ExperimentRow | None:
        """The first variant that can be compared with."""
        return next((row for row in self.rows if row.comparable), None)

    def base(self, row: ExperimentRow) -> ExperimentRow | None:
        """What a row is compared with: the first arm with all else the same; without arms, the reference."""
        arms = list(self.config.compare.arms)
        if len(arms) < 2:
            return self.reference
        choices = {choice for choice in row.choices if choice not in arms} | {arms[0]}
        return next((other for other in self.rows if other.comparable and set(other.choices) == choices), None)

    @property
    def base_name(self) -> str:
        if len(self.config.compare.arms) > 1 and any(len(row.choices) > 1 for row in self.rows):
            return next(iter(self.config.compare.arms))
        return self.reference.label if self.reference else ""

    @property
    def ranked(self) -> bool:
        """One seed says nothing about the next: without an interval there is no order."""
        return any(len(row.runs) > 1 for row in self.rows)

    @property
    def ordered(self) -> list[ExperimentRow]:
        """The best first where that is allowed; then those with a single run, with an objection, that failed."""
        if not self.ranked:
            return self.rows
        return sorted(
            self.rows, key=lambda row: (not row.runs, not row.comparable, len(row.runs) < 2, self._worth(row))
        )

    def difference(self, row: ExperimentRow, name: str | None = None) -> Mean | None:
        """To what it is compared with, seed by seed; None for that itself."""
        base, name = self.base(row), name or self.measure.name
        if base is None or row is base or not row.runs:
            return None
        return paired_difference(row.by_seed(name), base.by_seed(name))


@dataclass(frozen=True)
class TestScores:
    """The winner's test measures by seed; or why there are none."""

    __test__ = False  # not a class of tests

    folder: str
    scores: dict[int, dict[str, float]] = field(default_factory=dict)
    reason: str = ""

    def mean(self, measure: Measure) -> Mean:
        return Mean(tuple(scores[measure.name] for scores in self.scores.values() if measure.name in scores))


@dataclass(frozen=True)
class SweepResults(Results[SweepConfig]):
    axes: Mapping[str, Axis] = field(default_factory=dict)

    @property
    def finished(self) -> list[ExperimentRow]:
        """Rows to choose from: finished, with as many seeds as any other."""
        rows = [row for row in self.rows if row.state == "finished"] or [
            row for row in self.rows if row.runs and row.state in ("running", "waiting")
        ]
        most = max((self.score(row).count for row in rows), default=0)
        return [row for row in rows if self.score(row).count == most]

    @property
    def ordered(self) -> list[ExperimentRow]:
        """The best first; then what cannot be chosen, by its state."""
        eligible = {row.folder for row in self.finished}

        def place(row: ExperimentRow) -> tuple[bool, int, float]:
            rank = 0 if row.folder in eligible else WORST_FIRST[::-1].index(row.state)
            return row.folder not in eligible, rank, self._worth(row)

        return sorted(self.rows, key=place)

    @property
    def best(self) -> ExperimentRow | None:
        return self.ordered[0] if self.finished else None

    @property
    def not_worse(self) -> list[ExperimentRow]:
        """No significant difference to the best: over its seeds, or within its interval over the dev examples."""
        best = self.best
        if best is None:
            return []
        others, name = [row for row in self.finished if row is not best], self.measure.name
        if self.score(best).count > 1:
            return [
                row for row in others if not paired_difference(best.by_seed(name), row.by_seed(name)).differs_from_zero
            ]
        share = self.over_examples(self.score(best).mean, self.measure)
        return [row for row in others if share and share.interval[0] <= self.score(row).mean <= share.interval[1]]

    def over_examples(self, share: float, measure: Measure) -> Proportion | None:
        """A share as so many of the examples of its split, where their number is known."""
        sizes = self.data.get("questions") or self.data.get("examples") or {}
        if not measure.share or not isinstance(sizes, Mapping) or measure.split not in sizes:
            return None
        return Proportion(round(share * sizes[measure.split]), sizes[measure.split])

    @property
    def edges(self) -> list[tuple[str, Any, str]]:
        """Settings whose best value is the lowest or the highest that was tried."""
        best = self.best
        if best is None:
            return []
        ends = [(name, best.settings[name], axis.edge(best.settings[name])) for name, axis in self.axes.items()]
        return [(name, value, edge) for name, value, edge in ends if edge]

    def count(self, state: str) -> int:
        return sum(row.state == state for row in self.rows)


def seeds_text(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"


def most_common_level(rows: Sequence[ExperimentRow], name: str) -> float | None:
    """The mean of a baseline over all runs that have it."""
    values = [value for row in rows for value in row.by_seed(name).values()]
    return sum(values) / len(values) if values else None
