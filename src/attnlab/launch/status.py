"""How jobs stand: what Slurm knows of them, joined with what their run folders say."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.launch.queue import Queued, queue
from attnlab.launch.records import Submission, exit_code, folders, submissions_of
from attnlab.runs import is_run, read_metrics, read_record, read_status

STATES = {"PENDING": "queued", "COMPLETED": "finished"}


@dataclass(frozen=True)
class Standing:
    """One job with its run."""

    job: str
    state: str
    run: Path
    step: int
    steps: int
    metric: str
    value: float | None
    submitted: str
    remark: str


def known_jobs() -> dict[str, Queued]:
    """The queue; empty where there is no Slurm, as on a machine that only shares the folders."""
    return queue() if shutil.which("squeue") else {}


def at_work(folder: Path, jobs: Iterable[str]) -> list[str]:
    """Those of a folder's jobs that are queued or running; one that has left its exit code is only being cleared."""
    known = known_jobs()
    return [job for job in jobs if job in known and not known[job].ended and exit_code(folder, job) is None]


def standings(root: Path) -> list[Standing]:
    """Every job of the index, in the order of submission."""
    known = known_jobs()
    submissions = [(_near(folder), each) for folder in folders(root) for each in submissions_of(folder)]
    found: list[Standing] = []
    for folder, submission in sorted(submissions, key=lambda pair: pair[1].submitted):
        found += _of(folder, submission, known)
    return found


def _near(folder: Path) -> Path:
    """As seen from here, if it lies below."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _of(folder: Path, submission: Submission, known: dict[str, Queued]) -> list[Standing]:
    runs = [*submission.runs, *(["."] if submission.gather else [])]
    found = []
    for job, run in zip(submission.all, runs, strict=True):
        path, here = folder / run, known.get(job)
        code = exit_code(folder, job)
        far = progress(path) if job != submission.gather else {}
        remark = _remark(path, here, code)
        gathers = "gathers; " if job == submission.gather else ""
        found.append(
            Standing(
                job,
                state(here, code, path),
                path,
                far.get("step", 0),
                far.get("steps", 0),
                far.get("metric", ""),
                far.get("value"),
                submission.submitted,
                (gathers + remark).strip("; "),
            )
        )
    return found


def state(job: Queued | None, code: int | None, run: Path) -> str:
    """A job's state as the lab calls it: what Slurm says, else the job itself, else its run."""
    if job is not None and code is None:
        return STATES.get(job.state, job.state.lower())
    if code is not None:
        return "finished" if code == 0 else "interrupted" if code > 128 else "failed"
    last = read_status(run)["state"] if is_run(run) else "gone"
    return "gone" if last in ("running", "queued") else str(last)


def _remark(path: Path, job: Queued | None, code: int | None) -> str:
    if job is not None and code is None and not job.ended:
        waits = job.state == "PENDING" and job.reason != "None"
        return job.reason if waits else f"{job.time} on {job.node}" if job.node else ""
    said = read_status(path).get("reason", "") if is_run(path) else ""
    return str(said) or (f"exit code {code}" if code else "")


def progress(path: Path) -> dict[str, Any]:
    """How far a run is, or the latest of several in it, and what it measured last, on dev if it did."""
    metrics = max(path.rglob("metrics.jsonl"), key=lambda file: file.stat().st_mtime, default=None)
    if metrics is None:
        return {}
    last: dict[str, dict[str, Any]] = {}
    step = 0
    for line in read_metrics(metrics):
        last[line.get("split", "train")] = line
        step = max(step, line.get("step", 0))
    found: dict[str, Any] = {"step": step, "steps": read_record(metrics.parent).get("steps", 0)}
    for split in ("dev", "train"):
        if split in last and isinstance(last[split].get("loss"), float):
            return found | {"metric": f"{split} loss", "value": last[split]["loss"]}
    return found
