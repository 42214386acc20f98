"""Which jobs belong to which run: recorded at submission, in the run's folder and in an index of the runs.

RUN/slurm/job.json     every submission of this run, the last one last
RUN/slurm/JOB_exit     the exit code of a job, unless it was killed
runs/jobs.txt          the run folders that were submitted to a cluster, one per line
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.launch.slurm import SLURM_FOLDER

INDEX = "jobs.txt"
JOB = re.compile(r"\d+(_\d+)?")  # a job, or a task of an array


@dataclass(frozen=True)
class Submission:
    """The jobs of one submission: one, or the tasks of an array and the job that gathers their results."""

    command: str
    submitted: str
    jobs: list[str]
    runs: list[str]  # the run of each job, relative to the folder
    gather: str | None = None

    @property
    def all(self) -> list[str]:
        return [*self.jobs, *([self.gather] if self.gather else [])]

    @property
    def last(self) -> str:
        """The job that ends last."""
        return self.all[-1]


def record_submission(folder: Path, submission: Submission, root: Path) -> None:
    """Add a submission to its run folder, and the folder to the index in `root`."""
    submissions = [asdict(recorded) for recorded in [*submissions_of(folder), submission]]
    write_text(folder / SLURM_FOLDER / "job.json", json.dumps({"submissions": submissions}, indent=1) + "\n")
    root.mkdir(parents=True, exist_ok=True)
    line = os.path.relpath(folder, root) if folder.resolve().is_relative_to(root.resolve()) else str(folder.resolve())
    if line not in _index_lines(root):
        with (root / INDEX).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def submissions_of(folder: Path) -> list[Submission]:
    """Every submission of a run; none if it was never submitted to a cluster."""
    path = folder / SLURM_FOLDER / "job.json"
    try:
        submissions = json.loads(path.read_text(encoding="utf-8"))["submissions"]
        return [_checked(Submission(**fields)) for fields in submissions]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path} cannot be read as the jobs of this run ({error}): restore or delete it.") from None


def _checked(submission: Submission) -> Submission:
    """Numbers of jobs become file names and arguments of Slurm's commands; runs are below the folder."""
    if not all(isinstance(job, str) and JOB.fullmatch(job) for job in submission.all):
        raise ValueError("a job is not a number")
    if not all(isinstance(run, str) and ".." not in Path(run).parts for run in submission.runs):
        raise ValueError("a run is not in this folder")
    if len(submission.runs) != len(submission.jobs):
        raise ValueError("there is not one run per job")
    return submission


def submitted_folders(root: Path) -> Iterator[Path]:
    """The run folders of the index that still exist."""
    for line in _index_lines(root):
        folder = root / line
        if (folder / SLURM_FOLDER / "job.json").is_file():
            yield folder


def _index_lines(root: Path) -> list[str]:
    try:
        return (root / INDEX).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def exit_code(folder: Path, job: str) -> int | None:
    """The exit code of a job; None while it runs, and if it was killed."""
    try:
        return int((folder / SLURM_FOLDER / f"{job}_exit").read_text())
    except (FileNotFoundError, ValueError):
        return None


def find_jobs(target: str, root: Path) -> tuple[Path, list[str]]:
    """The submitted folder and the jobs that a job number or a run folder, also one inside another, refers to."""
    path = Path(target)
    if submissions := submissions_of(path):
        return path, submissions[-1].all
    for folder in submitted_folders(root):
        for submission in reversed(submissions_of(folder)):
            runs = dict(zip(submission.jobs, submission.runs, strict=True))
            jobs = [job for job in submission.all if target in (job, job.partition("_")[0])]
            jobs = jobs or [job for job, run in runs.items() if (folder / run).resolve() == path.resolve()]
            if jobs:
                return folder, jobs
    raise UserError(f"{target} is neither a job of {root / INDEX} nor a run that was submitted to a cluster.")
