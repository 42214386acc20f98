"""Watching a submission until its end: the output of its jobs, their status, their exit code."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.launch.queue import QueuedJob, queue
from attnlab.launch.records import Submission, exit_code
from attnlab.launch.slurm import log_of
from attnlab.launch.status import job_state

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 20.0  # seconds between two calls of squeue, growing
CANCELLED = 143


def follow(folder: Path, submission: Submission) -> int:
    """Print the output of the jobs until the last one ends; returns its exit code. Ctrl-C does not stop the jobs."""
    log = _Log(log_of(folder, submission.last))
    shown, pause, last_query = "", FIRST_PAUSE, 0.0
    try:
        while True:
            code = exit_code(folder, submission.last)
            log.print_new()
            if code is not None:
                return code
            if time.monotonic() - last_query > pause:
                queued = queue()
                last_query, pause = time.monotonic(), min(LONGEST_PAUSE, 1.5 * pause)
                status = _status_line(folder, submission, queued)
                if status != shown:
                    console.say(status)
                    shown, pause = status, FIRST_PAUSE
                last = queued.get(submission.last)
                if last is None or last.ended:
                    log.print_new()
                    return _end(folder, submission, last)
            time.sleep(0.3)
    except KeyboardInterrupt:
        console.say(f"the job continues without this terminal: see 'attnlab jobs', or 'attnlab jobs log {folder}'")
        return 130


class _Log:
    """A file that grows, or does not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path, self.position = path, 0

    def print_new(self) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self.position)
                new = file.read()
        except FileNotFoundError:
            return
        self.position += len(new)
        sys.stdout.write(new.decode("utf-8", errors="replace"))
        sys.stdout.flush()


def _status_line(folder: Path, submission: Submission, queued: dict[str, QueuedJob]) -> str:
    if submission.gather is None:
        job = queued.get(submission.last)
        why = f" ({job.reason})" if job and job.state == "PENDING" and job.reason != "None" else ""
        where = f" on {job.node}" if job and job.state == "RUNNING" else ""
        return f"job {submission.last}: {job_state(job, None, folder)}{where}{why}"
    states = Counter(
        job_state(queued.get(job), exit_code(folder, job), folder / run)
        for job, run in zip(submission.jobs, submission.runs, strict=True)
    )
    return f"{len(submission.jobs)} runs: {', '.join(f'{count} {name}' for name, count in sorted(states.items()))}"


def _end(folder: Path, submission: Submission, last: QueuedJob | None) -> int:
    """The last job has ended: with an exit code, or killed before it could write one."""
    if last is not None and last.state == "CANCELLED":
        console.say(f"job {submission.last} was cancelled")
        return CANCELLED
    for _ in range(50):  # a shared file system may show the file a little later
        code = exit_code(folder, submission.last)
        if code is not None:
            return code
        time.sleep(0.1)
    state = last.state if last else "no longer in the queue"
    raise RunFailed(f"job {submission.last} ended without an exit code ({state}): see 'attnlab jobs log {folder}'.")
