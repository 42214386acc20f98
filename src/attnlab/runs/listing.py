"""Finding runs, and the differences between two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
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
        float(training.get("seconds", last.get("seconds", 0.0))),
        training.get("best"),
        dict(record.get("results", {})),
    )


def differences(first: Path, second: Path) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs differ; a setting that one of them lacks is None."""
    return differing(read_config(first), read_config(second))
