"""Which jobs belong to which run: written down at submission, in the run's folder and in an index of the runs.

RUN/slurm/job.json     every submission of this run, the last one last
RUN/slurm/JOB_exit     the exit code of a job that has ended by itself
runs/jobs.txt          the run folders that were handed to a cluster, one a line
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.launch.slurm import PLACE

INDEX = "jobs.txt"


@dataclass(frozen=True)
class Submission:
    """The jobs of one submission: one, or the tasks of an array and the one that gathers."""

    command: str
    submitted: str
    jobs: list[str]
    runs: list[str]  # what each of them runs, seen from the folder
    gather: str | None = None

    @property
    def all(self) -> list[str]:
        return [*self.jobs, *([self.gather] if self.gather else [])]

    @property
    def last(self) -> str:
        """The job with which it is over."""
        return self.all[-1]


def note(folder: Path, submission: Submission, root: Path) -> None:
    """Remember a submission."""
    submissions = [asdict(each) for each in [*submissions_of(folder), submission]]
    write_text(folder / PLACE / "job.json", json.dumps({"submissions": submissions}, indent=1) + "\n")
    root.mkdir(parents=True, exist_ok=True)
    line = os.path.relpath(folder, root) if folder.resolve().is_relative_to(root.resolve()) else str(folder.resolve())
    if line not in _lines(root):
        with (root / INDEX).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def submissions_of(folder: Path) -> list[Submission]:
    """Every submission of a run; none for one that was never handed to a cluster."""
    path = folder / PLACE / "job.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["submissions"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    return [Submission(**each) for each in found]


def folders(root: Path) -> Iterator[Path]:
    """The run folders of the index that are still there."""
    for line in _lines(root):
        folder = root / line
        if (folder / PLACE / "job.json").is_file():
            yield folder


def _lines(root: Path) -> list[str]:
    try:
        return (root / INDEX).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def exit_code(folder: Path, job: str) -> int | None:
    """With what a job ended; None if it goes on, or could not say."""
    try:
        return int((folder / PLACE / f"{job}_exit").read_text())
    except (FileNotFoundError, ValueError):
        return None


def find(target: str, root: Path) -> tuple[Path, list[str]]:
    """A job number or a run folder, also one inside another, as the folder that was handed over and the jobs meant."""
    named = Path(target)
    if submissions := submissions_of(named):
        return named, submissions[-1].all
    for folder in folders(root):
        for submission in reversed(submissions_of(folder)):
            runs = dict(zip(submission.jobs, submission.runs, strict=True))
            found = [job for job in submission.all if target in (job, job.partition("_")[0])]
            found = found or [job for job, run in runs.items() if (folder / run).resolve() == named.resolve()]
            if found:
                return folder, found
    raise UserError(f"{target} is neither a job of {root / INDEX} nor a run that was handed to a cluster.")
