"""One classifier: trained, resumed or already finished; its results, or the reason why there are none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.config.classify import ClassifyConfig
from attnlab.jobs.subruns import run_subrun
from attnlab.runs import is_run, read_config, read_record, series


@dataclass(frozen=True)
class Outcome:
    """A finished run, or `reason`: why there is none. A model that cannot be trained scores 0, as in the document."""

    path: Path
    results: dict[str, Any] = field(default_factory=dict)
    learning: int = 0
    reason: str = ""

    def score(self, split: str) -> float:
        return float(self.results.get(f"{split}_accuracy", 0.0))

    def by_epoch(self, name: str) -> tuple[list[float], list[float]]:
        """A measure taken after every epoch, for a curve."""
        values = series(self.path / "metrics.jsonl", "dev", name)[1]
        return [float(epoch) for epoch in range(1, len(values) + 1)], values

    @property
    def epochs(self) -> int:
        return int(read_config(self.path)["training"]["epochs"])


def train(config: ClassifyConfig, path: Path, label: str) -> Outcome:
    """Train into `path`; an interrupted run with the same settings is resumed, a finished one is kept."""
    _must_be_same(config, path)
    run_subrun("classify", config, path, label)
    record = read_record(path)
    return Outcome(path, record["results"], record["learning_parameters"])


def attempt(config: ClassifyConfig, path: Path, label: str) -> Outcome:
    """The same; a model that is not available or does not fit is an outcome too."""
    try:
        return train(config, path, label)
    except (UserError, RunFailed, MemoryError) as failure:
        reason = str(failure) or "it does not fit into memory"
    except RuntimeError as failure:
        if "out of memory" not in str(failure) and "can't allocate memory" not in str(failure):
            raise
        reason = "it does not fit into memory"
    console.warn(f"{label}: {reason}")
    return Outcome(path, reason=reason)


def _must_be_same(config: ClassifyConfig, path: Path) -> None:
    if not is_run(path):
        return
    asked, saved = config.model_dump(mode="json"), read_config(path)
    if asked["batch"]["size"] == "auto":
        saved["batch"]["size"] = "auto"  # the run has the size that was found
    for section, values in asked.items():
        if section == "machine":
            continue
        for name, value in values.items():
            if saved[section].get(name) != value:
                raise UserError(
                    f"{path} was trained with {section}.{name} {saved[section].get(name)}, not {value}: "
                    "choose another --output."
                )
