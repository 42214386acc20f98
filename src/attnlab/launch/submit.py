"""From a command to a job, or to an array of jobs and one that gathers their results."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.launch.config import LaunchConfig, SlurmSection
from attnlab.launch.records import Submission, record_submission, submissions_of
from attnlab.launch.slurm import SLURM_FOLDER, cancel, require_slurm, submit
from attnlab.launch.status import active_jobs
from attnlab.runs.folder import ROOT

Command = Sequence[str]


def submit_run(
    launch: LaunchConfig, name: str, folder: Path, begin: Command, again: Command, on_each: int = 1
) -> Submission:
    """Submit one run as one job. `begin` starts it in `folder`, `again` resumes it after a restart.

    On several nodes every process of the run executes them, `on_each` processes per node.
    """
    check_can_submit(folder)
    task = _task(folder, begin, again, folder, on_each if launch.slurm.nodes > 1 else None)
    with _undone_on_failure(folder):
        jobs = submit([task], folder, launch.slurm, name)
    return _recorded(folder, Submission(shlex.join(begin), _now(), jobs, ["."]))


def submit_array(
    launch: Any, name: str, folder: Path, commands: Sequence[Command], runs: Sequence[str], gather: Command
) -> Submission:
    """Submit many commands as the tasks of one array, `launch.array.at_once` at a time, then one that gathers.

    Every command must be repeatable: a requeued task runs it again, and the command must find out what is left to do.
    `runs` are the folders in which they work, relative to `folder`. The last job starts when all others have ended,
    successfully or not.
    """
    check_can_submit(folder)
    tasks = [_task(folder, command, command, folder / run) for command, run in zip(commands, runs, strict=True)]
    with _undone_on_failure(folder):
        jobs = submit(tasks, folder, launch.slurm, name, launch.array.at_once)
        array = jobs[0].partition("_")[0]
        last = _task(folder, gather, gather, None)
        try:
            last_job = submit([last], folder, _small(launch.slurm), f"{name}-gather", after=array)[0]
        except UserError:
            cancel(folder, array)
            raise
    return _recorded(folder, Submission(shlex.join(gather), _now(), jobs, list(runs), last_job))


def check_can_submit(folder: Path) -> None:
    """A UserError if no job can be submitted for this folder now."""
    require_slurm()
    check_no_active_jobs(folder)


def check_no_active_jobs(folder: Path) -> None:
    """A UserError if jobs of an earlier submission are still queued or running."""
    submissions = submissions_of(folder)
    active = active_jobs(folder, submissions[-1].all) if submissions else []
    if active:
        raise UserError(f"{folder}: job {active[0]} is still active ('attnlab jobs'): wait, or cancel it first.")


@contextmanager
def _undone_on_failure(folder: Path) -> Iterator[None]:
    """Create the folders of a submission; if it is refused, remove them."""
    slurm_folder = folder / SLURM_FOLDER
    created = [path for path in (slurm_folder, folder) if not path.exists()]
    try:
        slurm_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{slurm_folder}: the folder cannot be created: {error.strerror}.") from None
    try:
        yield
    except BaseException:
        for path in created:
            shutil.rmtree(path, ignore_errors=True)
        raise


def _task(folder: Path, begin: Command, again: Command, run: Path | None, on_each: int | None = None) -> Any:
    from attnlab.launch.task import SlurmTask

    here = Path.cwd()
    return SlurmTask(list(begin), list(again), here / run if run else None, here, here / folder / SLURM_FOLDER, on_each)


def _small(slurm: SlurmSection) -> SlurmSection:
    """The resources of a job that only reads results and draws figures."""
    return slurm.model_copy(update={"gpus": None, "cpus": None})


def _recorded(folder: Path, submission: Submission) -> Submission:
    record_submission(folder, submission, ROOT)
    first, count = submission.jobs[0], len(submission.jobs)
    if submission.gather is None:
        console.result(f"job: {first}")
    else:
        array = f"{first.partition('_')[0]} ({count} runs)" if count > 1 else first
        console.result(f"job: {array}, then {submission.gather} gathers")
    console.result(f"run: {folder}")
    return submission


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
