"""A variant of a classifier: besides its accuracies, what it cost, whether it collapsed, and what it said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from attnlab.experiments.compare.cells import Variant
from attnlab.experiments.compare.results import Row
from attnlab.runs import read_config, read_metrics
from attnlab.runs.predictions import Prediction, read_predictions
from attnlab.stats.intervals import Mean


@dataclass(frozen=True)
class Course:
    """Accuracy over a run: at each evaluation the epochs gone by, and by split the values over seeds."""

    epochs: list[float]
    accuracies: dict[str, list[Mean]]


@dataclass(frozen=True)
class ClassifyRow(Row):
    paths: dict[int, Path] = field(default_factory=dict)
    learning_parameters: int = 0
    steps_an_epoch: float = 1.0

    @property
    def collapsed(self) -> list[int]:
        """The seeds with which it tells nothing apart."""
        return [seed for seed, run in self.runs.items() if run.get("collapsed")]

    @property
    def reason(self) -> str:
        """Why it could not be run; empty if it could."""
        return "" if self.runs else next(iter(self.failures.values()), "it was not run.")

    @cached_property
    def rates(self) -> list[float]:
        """The learning rates of its runs: one, unless a collapse was answered with a lower one."""
        return sorted({float(read_config(path)["optimizer"]["lr"]) for path in self.paths.values()})

    @cached_property
    def said(self) -> dict[int, Prediction]:
        """What was said on test, by seed."""
        found = {seed: read_predictions(path) for seed, path in self.paths.items()}
        return {seed: said for seed, said in found.items() if said is not None}

    @property
    def chosen_seed(self) -> int:
        """The run one would keep: the best on dev, of equals the first."""
        scores = self.by_seed("dev_accuracy")
        return max(scores, key=lambda seed: (scores[seed], -seed))

    @cached_property
    def course(self) -> Course:
        """The evaluations that all seeds have."""
        lines = [
            {line["step"]: line for line in read_metrics(path / "metrics.jsonl") if line.get("split") == "dev"}
            for path in self.paths.values()
        ]
        steps = sorted(set.intersection(*map(set, lines))) if lines else []
        names = {"train": "train_accuracy", "dev": "accuracy"}
        accuracies = {
            split: [Mean(tuple(line[step][name] for line in lines)) for step in steps]
            for split, name in names.items()
            if steps and name in lines[0][steps[0]]
        }
        return Course([step / self.steps_an_epoch for step in steps], accuracies)


def row_of(
    variant: Variant, paths: dict[int, Path], records: dict[int, dict[str, Any]], known: Mapping[str, Any]
) -> ClassifyRow:
    """From the folders and records of finished runs."""
    first: dict[str, Any] = next(iter(records.values()), {})
    row: ClassifyRow = ClassifyRow.of(
        variant,
        records,
        known,
        paths=paths,
        learning_parameters=first.get("learning_parameters", 0),
        steps_an_epoch=_steps_an_epoch(first) if first else 1.0,
    )
    for seed, record in records.items():
        run = row.runs[seed]
        run["seconds"] += run.get("feature_seconds", 0.0)  # of a frozen body, computed once
        if record.get("peak_memory"):
            run["peak_memory"] = record["peak_memory"]
    # A run whose body is frozen counts the head alone.
    return replace(row, parameters=max(row.parameters, known.get("parameters", 0)))


def _steps_an_epoch(record: dict[str, Any]) -> float:
    """From the examples that were seen: a run may end within an epoch."""
    training = record["training"]
    return max(1.0, training["step"] * record["data"]["examples"]["train"] / max(1, training["examples"]))
