"""The status of jobs, from Slurm and from their run folders."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.launch.queue import QueuedJob, queue
from attnlab.launch.records import Submission, exit_code, submissions_of, submitted_folders
from attnlab.runs import is_run, read_metrics, read_record, read_status

STATES = {"PENDING": "queued", "COMPLETED": "finished"}


@dataclass(frozen=True)
class JobStatus:
    """One job and the progress of its run."""

    job: str
    state: str
    run: Path
    step: int
    steps: int
    metric: str
    value: float | None
    submitted: str
    remark: str


def queued_jobs() -> dict[str, QueuedJob]:
    """The queue; empty without Slurm, as on a machine that only shares the folders."""
    return queue() if shutil.which("squeue") else {}


def active_jobs(folder: Path, jobs: Iterable[str]) -> list[str]:
    """Those of a folder's jobs that are queued or running; one with an exit code has ended, whatever Slurm reports."""
    queued = queued_jobs()
    return [job for job in jobs if job in queued and not queued[job].ended and exit_code(folder, job) is None]


def job_statuses(root: Path) -> list[JobStatus]:
    """Every job of the index, in the order of submission."""
    queued = queued_jobs()
    submissions = [
        (_relative(folder), submission) for folder in submitted_folders(root) for submission in submissions_of(folder)
    ]
    statuses: list[JobStatus] = []
    for folder, submission in sorted(submissions, key=lambda pair: pair[1].submitted):
        statuses += _statuses(folder, submission, queued)
    return statuses


def _relative(folder: Path) -> Path:
    """Relative to the working folder, if it is inside."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _statuses(folder: Path, submission: Submission, queued: dict[str, QueuedJob]) -> list[JobStatus]:
    runs = [*submission.runs, *(["."] if submission.gather else [])]
    statuses = []
    for job, run in zip(submission.all, runs, strict=True):
        path, in_queue = folder / run, queued.get(job)
        code = exit_code(folder, job)
        progress = run_progress(path) if job != submission.gather else {}
        remark = _remark(path, in_queue, code)
        gathers = "gathers; " if job == submission.gather else ""
        statuses.append(
            JobStatus(
                job,
                job_state(in_queue, code, path),
                path,
                progress.get("step", 0),
                progress.get("steps", 0),
                progress.get("metric", ""),
                progress.get("value"),
                submission.submitted,
                (gathers + remark).strip("; "),
            )
        )
    return statuses


def job_state(job: QueuedJob | None, code: int | None, run: Path) -> str:
    """A job's state in the lab's words: from Slurm, else from its exit code, else from its run."""
    if job is not None and code is None:
        return STATES.get(job.state, job.state.lower())
    if code is not None:
        return "finished" if code == 0 else "interrupted" if code > 128 else "failed"
    last = read_status(run)["state"] if is_run(run) else "gone"
    return "gone" if last in ("running", "queued") else str(last)


def _remark(path: Path, job: QueuedJob | None, code: int | None) -> str:
    if job is not None and code is None and not job.ended:
        waits = job.state == "PENDING" and job.reason != "None"
        return job.reason if waits else f"{job.time} on {job.node}" if job.node else ""
    reason = read_status(path).get("reason", "") if is_run(path) else ""
    return str(reason) or (f"exit code {code}" if code else "")


def run_progress(path: Path) -> dict[str, Any]:
    """The step and the last loss, on dev if measured, of a run or of the latest of several inside it."""
    metrics = max(path.rglob("metrics.jsonl"), key=lambda file: file.stat().st_mtime, default=None)
    if metrics is None:
        return {}
    last: dict[str, dict[str, Any]] = {}
    step = 0
    for line in read_metrics(metrics):
        last[line.get("split", "train")] = line
        step = max(step, line.get("step", 0))
    progress: dict[str, Any] = {"step": step, "steps": read_record(metrics.parent).get("steps", 0)}
    for split in ("dev", "train"):
        if split in last and isinstance(last[split].get("loss"), float):
            return progress | {"metric": f"{split} loss", "value": last[split]["loss"]}
    return progress
