"""One classifier of a study: what it was asked to be, and its scores or the reason why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from attnlab.config.classify import ClassifyConfig
from attnlab.jobs.scripted import settings_of_run
from attnlab.jobs.subruns import keep_only_weights, run_subrun
from attnlab.runs import is_run, read_config, read_record, read_status, series
from attnlab.runs.metrics import trained_seconds
from attnlab.stats.intervals import Proportion

UNREACHABLE, TOO_LARGE, FAILED = "unreachable", "does not fit", "failed"


@dataclass(frozen=True)
class Outcome:
    """A finished run, or `state` and `reason`: why there is none."""

    name: str
    model: str
    path: Path
    state: str = "finished"
    reason: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    """By name, such as dev_accuracy."""

    @property
    def done(self) -> bool:
        return self.state == "finished"

    @property
    def record(self) -> dict[str, Any]:
        return read_record(self.path)

    def accuracy(self, split: str) -> float:
        """0 for a classifier that could not be trained, as the document has it."""
        return self.scores.get(f"{split}_accuracy", 0.0)

    def by_epoch(self, measure: str) -> list[float]:
        """A measure taken after every epoch, for a curve."""
        return series(self.path / "metrics.jsonl", "dev", measure)[1]

    def row(self, counts: dict[str, int]) -> dict[str, Any]:
        """Everything about it for results.json; `counts` are the examples of each split."""
        row: dict[str, Any] = {"name": self.name, "model": self.model, "state": self.state}
        if not self.done:
            return row | {"reason": self.reason}
        config, record = read_config(self.path), self.record
        memorized = config["watch"]["overfit"]
        splits = {"dev": "train"} if memorized else {"dev": "dev", "test": "test"}
        sizes = {"dev": memorized} if memorized else counts
        curves = {"train": "accuracy"} if memorized else {"train": "train_accuracy", "dev": "accuracy"}
        return row | {
            "lr": config["optimizer"]["lr"],
            "num_epochs": config["training"]["epochs"],
            "batch_size": config["batch"]["size"],
            "steps": record["training"]["step"],
            "tuning": config["tuning"]["method"],
            "tuned_parameters": record["learning_parameters"],
            **{
                shown: share(self.accuracy(split), sizes[split])
                for split, shown in splits.items()
                if f"{split}_accuracy" in self.scores
            },
            "by_epoch": {split: self.by_epoch(measure) for split, measure in curves.items()},
            "collapsed": bool(record["results"].get("collapsed")) and not memorized,
            "minutes": minutes(self.path, record),
        }


def share(accuracy: float, count: int) -> dict[str, Any]:
    """An accuracy with its 95% interval over the instances."""
    right = round(accuracy * count)
    return {"accuracy": accuracy, "right": right, "count": count, "interval": list(Proportion(right, count).interval)}


def minutes(path: Path, record: dict[str, Any]) -> float:
    """From start to end, evaluations included; of a run that was resumed, the training steps alone."""
    seconds = trained_seconds(path, record)
    if not record.get("resumed"):
        start, end = (datetime.fromisoformat(at) for at in (record["started"], read_status(path)["at"]))
        seconds = max(seconds, (end - start).total_seconds())
    return round(seconds / 60, 2)


def train(name: str, config: ClassifyConfig, path: Path, resume_command: str, changes: tuple[str, ...] = ()) -> Outcome:
    """Train into `path`; an interrupted run with the same settings is resumed, a finished one is kept."""
    if is_run(path):
        settings_of_run(config, path)  # raises if they differ
    run_subrun("classify", config, path, name, resume_command, changes=changes)
    keep_only_weights(path)
    return Outcome(name, config.model.name, path, scores=read_record(path)["results"])
