"""Watching a submission until its end: what its jobs print, how they stand, with what they end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.launch.queue import Queued, queue
from attnlab.launch.records import Submission, exit_code
from attnlab.launch.slurm import log_of
from attnlab.launch.status import state

FIRST, LONGEST = 1.0, 20.0  # seconds between two questions to Slurm: often at first, then seldom
CANCELLED = 143


def follow(folder: Path, submission: Submission) -> int:
    """Print what the jobs print until the last one has ended; returns its exit code. Ctrl-C leaves the jobs alone."""
    log = _Log(log_of(folder, submission.last))
    shown, pause, asked = "", FIRST, 0.0
    try:
        while True:
            code = exit_code(folder, submission.last)
            log.print_new()
            if code is not None:
                return code
            if time.monotonic() - asked > pause:
                known = queue()
                asked, pause = time.monotonic(), min(LONGEST, 1.5 * pause)
                said = _standing(folder, submission, known)
                if said != shown:
                    console.say(said)
                    shown, pause = said, FIRST
                last = known.get(submission.last)
                if last is None or last.ended:
                    log.print_new()
                    return _end(folder, submission, last)
            time.sleep(0.3)
    except KeyboardInterrupt:
        console.say(f"the job goes on without this terminal: see 'attnlab jobs', or 'attnlab jobs log {folder}'")
        return 130


class _Log:
    """A file that grows, or is not there yet."""

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


def _standing(folder: Path, submission: Submission, known: dict[str, Queued]) -> str:
    """How it stands, in a line."""
    if submission.gather is None:
        job = known.get(submission.last)
        why = f" ({job.reason})" if job and job.state == "PENDING" and job.reason != "None" else ""
        where = f" on {job.node}" if job and job.state == "RUNNING" else ""
        return f"job {submission.last}: {state(job, None, folder)}{where}{why}"
    states = Counter(
        state(known.get(job), exit_code(folder, job), folder / run)
        for job, run in zip(submission.jobs, submission.runs, strict=True)
    )
    return f"{len(submission.jobs)} runs: {', '.join(f'{count} {name}' for name, count in sorted(states.items()))}"


def _end(folder: Path, submission: Submission, last: Queued | None) -> int:
    """The last job has ended: with a code of its own, or killed before it could leave one."""
    if last is not None and last.state == "CANCELLED":
        console.say(f"job {submission.last} was cancelled")
        return CANCELLED
    for _ in range(50):  # a shared file system may show the file a little later
        code = exit_code(folder, submission.last)
        if code is not None:
            return code
        time.sleep(0.1)
    how = last.state if last else "gone from the queue"
    raise RunFailed(f"job {submission.last} ended without a word ({how}): see 'attnlab jobs log {folder}'.")
