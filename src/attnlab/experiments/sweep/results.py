"""What a sweep found, read from its trials and their run folders: the choice is made on dev alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.jobs.measures import Measure, ranking
from attnlab.experiments.sweep.queue import Queue, Unit
from attnlab.experiments.sweep.space import Axis, Settings, identity, label_of
from attnlab.jobs.registry import config_of
from attnlab.runs import is_run, read_record
from attnlab.runs.listing import summarise
from attnlab.stats.intervals import Mean, Proportion, paired_difference

WORST_FIRST = ("failed", "pruned", "running", "waiting", "finished")


@dataclass(frozen=True)
class Row:
    """One cell: its settings, what each seed scored on dev, and how it stands."""

    number: int
    settings: Settings
    folder: str
    scores: dict[int, float]
    seconds: float  # in training steps, of all its runs
    state: str
    reasons: dict[int, str]

    @property
    def label(self) -> str:
        return label_of(self.settings)

    @property
    def mean(self) -> Mean:
        return Mean(tuple(self.scores.values()))

    def path(self, root: Path, seed: int) -> Path:
        return root / "trials" / self.folder / f"seed-{seed}"


@dataclass(frozen=True)
class Tested:
    """The winner's test measures by seed; or why there are none."""

    folder: str
    scores: dict[int, dict[str, float]] = field(default_factory=dict)
    reason: str = ""

    def mean(self, measure: Measure) -> Mean:
        return Mean(tuple(found[measure.name] for found in self.scores.values() if measure.name in found))


@dataclass(frozen=True)
class Results:
    config: Any
    axes: dict[str, Axis]
    rows: list[Row]  # in the order of their trials
    record: dict[str, Any]  # of the sweep: command, machine, versions
    example: dict[str, Any]  # the record of one of its runs: about the data

    @property
    def measure(self) -> Measure:
        """What chooses."""
        return ranking(config_of(self.config.sweep.job).headlines)

    @property
    def on_test(self) -> list[Measure]:
        return [measure for measure in config_of(self.config.sweep.job).headlines if measure.split == "test"]

    @property
    def finished(self) -> list[Row]:
        """Rows to choose from: finished, with as many seeds as any other."""
        rows = [row for row in self.rows if row.state == "finished"] or [
            row for row in self.rows if row.scores and row.state in ("running", "waiting")
        ]
        most = max((len(row.scores) for row in rows), default=0)
        return [row for row in rows if len(row.scores) == most]

    @property
    def ordered(self) -> list[Row]:
        """The best first; then what is not to be chosen, by how it stands."""
        eligible = {row.folder for row in self.finished}

        def place(row: Row) -> tuple[bool, int, float]:
            value = -self.measure.sign * row.mean.mean
            rank = 0 if row.folder in eligible else WORST_FIRST[::-1].index(row.state)
            return row.folder not in eligible, rank, math.inf if math.isnan(value) else value

        return sorted(self.rows, key=place)

    @property
    def best(self) -> Row | None:
        return self.ordered[0] if self.finished else None

    @property
    def alike(self) -> list[Row]:
        """Those that these runs cannot tell from the best: by their seeds, or within the interval over dev examples."""
        best = self.best
        if best is None:
            return []
        others = [row for row in self.finished if row is not best]
        if best.mean.count > 1:
            return [row for row in others if not paired_difference(best.scores, row.scores).differs_from_zero]
        interval = self.over_examples(best.mean.mean, self.measure)
        return [row for row in others if interval and interval.interval[0] <= row.mean.mean <= interval.interval[1]]

    def over_examples(self, share: float, measure: Measure) -> Proportion | None:
        """A share as so many out of the examples of its split, where their number is known."""
        data = self.example.get("data", {})
        sizes = data.get("questions") or data.get("examples") or {}
        if not measure.share or not isinstance(sizes, Mapping) or measure.split not in sizes:
            return None
        return Proportion(round(share * sizes[measure.split]), sizes[measure.split])

    @property
    def edges(self) -> list[tuple[str, Any, str]]:
        """Settings whose best value is the lowest or the highest that was tried."""
        if self.best is None:
            return []
        found = [
            (name, self.best.settings[name], axis.edge(self.best.settings[name])) for name, axis in self.axes.items()
        ]
        return [(name, value, edge) for name, value, edge in found if edge]

    def count(self, state: str) -> int:
        return sum(row.state == state for row in self.rows)


def gather(queue: Queue) -> Results:
    """Every cell of the sweep as it stands."""
    cells: dict[str, dict[int, Unit]] = {}
    for unit in queue.units():
        for seed in unit.seeds:
            cells.setdefault(identity(unit.settings), {})[seed] = unit  # the latest trial of a seed counts
    rows = [_row(queue, by_seed) for by_seed in cells.values()]
    paths = [row.path(queue.root, seed) for row in rows for seed in row.scores]
    example = read_record(paths[0]) if paths else {}
    return Results(queue.config, queue.axes, rows, read_record(queue.root), example)


def _row(queue: Queue, by_seed: Mapping[int, Unit]) -> Row:
    first = min(by_seed.values(), key=lambda unit: unit.number)
    name = ranking(config_of(queue.sweep.job).headlines).name
    scores, reasons, seconds = {}, {}, 0.0
    for seed, unit in sorted(by_seed.items()):
        path = unit.path(queue.root, seed)
        if is_run(path):
            seconds += summarise(path).seconds
            value = read_record(path).get("results", {}).get(name)
            if unit.state == "finished" and value is not None:
                scores[seed] = float(value)
        if unit.reason and unit.state in ("failed", "pruned"):
            reasons[seed] = unit.reason
    state = min((unit.state for unit in by_seed.values()), key=WORST_FIRST.index)
    return Row(first.number, first.settings, first.folder, scores, seconds, state, reasons)


def history(rows: Sequence[Row], sign: int) -> tuple[list[int], list[float]]:
    """The best mean so far after each trial that finished."""
    done = sorted((row for row in rows if row.state == "finished"), key=lambda row: row.number)
    numbers, values = [row.number for row in done], [row.mean.mean for row in done]
    choose = max if sign > 0 else min
    return numbers, [choose(values[: n + 1]) for n in range(len(values))]
