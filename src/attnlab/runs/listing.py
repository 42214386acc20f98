"""Finding runs, and the differences between two."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.runs.folder import must_be_free
from attnlab.runs.metrics import last_metrics
from attnlab.runs.record import RECORD, is_run, read_record
from attnlab.runs.settings import differing, read_config
from attnlab.runs.status import read_status

DAMAGED = "damaged"
"""The state of a folder whose files cannot be read; its reason says what is wrong with them."""


@dataclass(frozen=True)
class Summary:
    """One line on a run."""

    path: Path
    kind: str
    state: str
    reason: str
    started: str
    step: int
    steps: int
    seconds: float
    best: float | None
    results: dict[str, Any]
    data: str = ""
    model: str = ""
    method: str = ""
    """How a classifier is tuned, or the objective of a training."""
    bytes: int = 0
    """On disk, with all that is in its folder."""


SORTS: dict[str, Callable[[Summary], Any]] = {
    "started": lambda run: run.started,
    "name": lambda run: str(run.path),
    "time": lambda run: -run.seconds,
    "disk": lambda run: -run.bytes,
    "dev": lambda run: -run.results.get("dev_accuracy", -1.0),
    "test": lambda run: -run.results.get("test_accuracy", -1.0),
}
"""By what runs are sorted: the largest or best first, times and names ascending."""


def find_runs(root: Path) -> Iterator[Path]:
    """Run folders below `root`, oldest first; a run inside a run counts, and so does one that is damaged."""
    if is_run(root):
        yield root
    if root.is_dir():
        found = [record.parent for record in root.rglob(RECORD) if record.parent != root]
        yield from sorted(found, key=lambda path: (_started(path), str(path)))


def _started(path: Path) -> str:
    try:
        return str(read_record(path)["started"])
    except UserError:
        return ""


def summarise(path: Path) -> Summary:
    """One line on a run; a damaged one says what is wrong with it, so that it hides no other."""
    try:
        return _summary(path)
    except UserError as error:
        return Summary(path, "", DAMAGED, str(error), "", 0, 0, 0.0, None, {})


def _summary(path: Path) -> Summary:
    record, status = read_record(path), read_status(path)
    training = record.get("training", {})
    last = {} if {"step", "seconds"} <= training.keys() else last_metrics(path / "metrics.jsonl")
    return Summary(
        path,
        record["kind"],
        status["state"],
        status["reason"],
        record["started"],
        int(training.get("step", last.get("step", 0))),
        int(record.get("steps", 0)),
        float(training.get("seconds", last.get("seconds", 0.0))) + _number(record, "results", "feature_seconds"),
        training.get("best"),
        dict(record.get("results", {})),
        *_about(path, record),
        disk(path),
    )


def _number(record: Mapping[str, Any], *names: str) -> float:
    value = _inside(record, *names)
    return float(value) if isinstance(value, int | float) else 0.0


def _inside(values: Any, *names: str) -> Any:
    for name in names:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def _about(path: Path, record: Mapping[str, Any]) -> tuple[str, str, str]:
    """Data, model and method, as short as they are told apart; empty where a kind of run has none."""
    try:
        config = read_config(path)
    except UserError:
        return "", "", ""
    data = next((value for names in DATA if isinstance(value := _inside(config, *names), str) and value), "")
    model = next((value for names in MODEL if isinstance(value := _inside(config, *names), str) and value), "")
    method = next((value for names in METHOD if isinstance(value := _inside(config, *names), str) and value), "")
    return _last(data), _last(model), method


DATA = (("data", "task"), ("data", "corpus"), ("data", "text"), ("data", "questions"), ("data", "train"))
MODEL = (("model", "name"), ("model", "attention"), ("start", "run"))
METHOD = (("tuning", "method"), ("objective", "name"), ("objective", "kind"))


def _last(name: str) -> str:
    """The last part of a path."""
    return Path(name).name or name


def disk(path: Path) -> int:
    """Bytes of all files below a folder; links are not followed."""
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
    return size


def delete_run(path: Path) -> None:
    """Remove the folder of a run that no process writes to."""
    must_be_free(path)
    if read_status(path)["state"] == "running":
        raise UserError(f"{path} is running: stop it first.")
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise UserError(f"{path} cannot be deleted: {error.strerror}.") from None


def differences(first: Path, second: Path) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs differ; a setting that one of them lacks is None."""
    return differing(read_config(first), read_config(second))
