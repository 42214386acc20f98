"""From a command to a job, or to an array of jobs with one that gathers what they found."""

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
from attnlab.launch.records import Submission, note, submissions_of
from attnlab.launch.slurm import PLACE, cancel, must_be_there, submit
from attnlab.launch.status import at_work
from attnlab.runs.folder import ROOT

Command = Sequence[str]


def submit_run(
    launch: LaunchConfig, name: str, folder: Path, begin: Command, again: Command, on_each: int = 1
) -> Submission:
    """One run as one job. `begin` starts it in `folder`, `again` goes on with it after a restart.

    On several nodes these are what each of the run's processes does, `on_each` of them on every node.
    """
    ready(folder)
    task = _task(folder, begin, again, folder, on_each if launch.slurm.nodes > 1 else None)
    with _attempt(folder):
        jobs = submit([task], folder, launch.slurm, name)
    return _noted(folder, Submission(shlex.join(begin), _now(), jobs, ["."]))


def submit_array(
    launch: Any, name: str, folder: Path, commands: Sequence[Command], runs: Sequence[str], gather: Command
) -> Submission:
    """Many commands as the tasks of one array, `launch.array.at_once` at a time, then one that gathers.

    Every command must be one that can be given again: a task that is put back in the queue starts with it anew and
    is to find by itself what is left to do. `runs` says where each works, seen from `folder`. The last job starts when
    all others have ended, however they ended.
    """
    ready(folder)
    tasks = [_task(folder, command, command, folder / run) for command, run in zip(commands, runs, strict=True)]
    with _attempt(folder):
        jobs = submit(tasks, folder, launch.slurm, name, launch.array.at_once)
        array = jobs[0].partition("_")[0]
        last = _task(folder, gather, gather, None)
        try:
            last_job = submit([last], folder, _small(launch.slurm), f"{name}-gather", after=array)[0]
        except UserError:
            cancel(folder, array)
            raise
    return _noted(folder, Submission(shlex.join(gather), _now(), jobs, list(runs), last_job))


def ready(folder: Path) -> None:
    """One sentence if no job can be handed in for this folder now."""
    must_be_there()
    none_at_work(folder)


def none_at_work(folder: Path) -> None:
    """One sentence if jobs of an earlier submission are still to be waited for."""
    submissions = submissions_of(folder)
    going = at_work(folder, submissions[-1].all) if submissions else []
    if going:
        raise UserError(f"{folder}: job {going[0]} is still at it ('attnlab jobs'): wait, or cancel it first.")


@contextmanager
def _attempt(folder: Path) -> Iterator[None]:
    """Around a submission: if it is refused, the folders made for it go again."""
    place = folder / PLACE
    made = [path for path in (place, folder) if not path.exists()]
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{place}: the folder cannot be made: {error.strerror}.") from None
    try:
        yield
    except BaseException:
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
        raise


def _task(folder: Path, begin: Command, again: Command, run: Path | None, on_each: int | None = None) -> Any:
    from attnlab.launch.task import Task

    here = Path.cwd()
    return Task(list(begin), list(again), here / run if run else None, here, here / folder / PLACE, on_each)


def _small(slurm: SlurmSection) -> SlurmSection:
    """For a job that only reads and draws."""
    return slurm.model_copy(update={"gpus": None, "cpus": None})


def _noted(folder: Path, submission: Submission) -> Submission:
    note(folder, submission, ROOT)
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
