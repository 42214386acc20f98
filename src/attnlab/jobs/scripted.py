"""Trainings of an assignment's scripts: a run whose command, typed again, goes on where its last checkpoint is."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.config.job import JobConfig
from attnlab.jobs.engine import Job, RunOptions, run_job, saved_config
from attnlab.runs import is_run

KIND = "course"


def train_or_go_on(job: Job, folder: Path, label: str, overwrite: bool = False) -> None:
    """Train in `folder`; a run that lies there must be of the same settings and data, and is brought to its end."""
    clear_unborn(folder)
    resume = is_run(folder) and not overwrite
    if resume:
        job.config = kept(job.config, folder)
    again = shlex.join(["python", *sys.argv])
    run_job(job, RunOptions(folder, overwrite, resume, label=label, again=again))


def clear_unborn(folder: Path) -> None:
    """Remove a folder whose process was killed before the run had begun: it holds nothing that was trained."""
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if "run.json" not in names and all(n in ("lock", "config.yaml") or n.endswith(".tmp") for n in names):
        shutil.rmtree(folder, ignore_errors=True)


def kept(asked: JobConfig, folder: Path) -> JobConfig:
    """The configuration the run was begun with, machine and all; another one is refused."""
    saved = saved_config(folder, JobConfig)
    then, now = saved.model_dump(), asked.model_dump()
    now["machine"] = {
        name: then["machine"][name] if value == "auto" else value for name, value in now["machine"].items()
    }
    for section, values in now.items():
        for name, value in values.items():
            if value != then[section][name]:
                raise UserError(
                    f"{folder} holds a training with {section}.{name} {then[section][name]}, and this one has {value}: "
                    "type the command it was begun with, or remove the folder to begin anew."
                )
    return saved
