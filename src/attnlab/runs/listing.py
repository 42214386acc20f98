"""Finding runs, and the differences between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.runs.folder import is_run, read_config, read_record, read_status
from attnlab.runs.metrics import last_metrics


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
    """Run folders below `root`, oldest first; a run inside a run counts."""
    if is_run(root):
        yield root
    if root.is_dir():
        found = [record.parent for record in root.rglob("run.json") if record.parent != root]
        yield from sorted(found, key=lambda path: (read_record(path).get("started", ""), str(path)))


def summarise(path: Path) -> Summary:
    record, status = read_record(path), read_status(path)
    training = record.get("training", {})
    last = {} if {"step", "seconds"} <= training.keys() else last_metrics(path / "metrics.jsonl")
    return Summary(
        path,
        record["kind"],
        status["state"],
        status.get("reason", ""),
        record["started"],
        int(training.get("step", last.get("step", 0))),
        int(record.get("steps", 0)),
        float(training.get("seconds", last.get("seconds", 0.0))),
        training.get("best"),
        dict(record.get("results", {})),
    )


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted names."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out |= flat(value, f"{prefix}{name}.")
        else:
            out[prefix + name] = value
    return out


def differences(first: Path, second: Path) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs differ; a setting that one of them lacks is None."""
    one, two = flat(read_config(first)), flat(read_config(second))
    names = [*one, *(name for name in two if name not in one)]
    return {name: (one.get(name), two.get(name)) for name in names if one.get(name) != two.get(name)}
