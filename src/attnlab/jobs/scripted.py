"""Training in the scripts of an assignment: running the same command again resumes from the last checkpoint."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TypeVar

from attnlab.base.errors import UserError
from attnlab.config.job import JobConfig
from attnlab.config.recipe import check
from attnlab.jobs.engine import Trainable, train_run
from attnlab.jobs.job import RunOptions
from attnlab.runs import is_run
from attnlab.runs.settings import trained_config

KIND = "course"
C = TypeVar("C", bound=JobConfig)


def train_or_resume(job: Trainable[C], folder: Path, label: str, overwrite: bool = False) -> None:
    """Train in `folder`; an existing run must have the same settings and data, and is resumed."""
    resume = is_run(folder) and not overwrite
    if resume:
        job.config = settings_of_run(job.config, folder)
    command = shlex.join(["python", *sys.argv])
    train_run(job, RunOptions(folder, overwrite, resume, label=label, resume_command=command))


def settings_of_run(settings: C, folder: Path) -> C:
    """The configuration the run was started with, machine included; raises if `settings` differ."""
    saved = check(type(settings), trained_config(folder))
    then, now = saved.model_dump(), settings.model_dump()
    for section in ("machine", "batch"):  # the run has what was chosen
        now[section] = {
            name: then[section][name] if value in ("auto", "largest") else value for name, value in now[section].items()
        }
    for section, values in now.items():
        for name, value in values.items():
            if value != then[section][name]:
                raise UserError(
                    f"{folder} was trained with {section}.{name} {then[section][name]}, got {value}: "
                    "use the command it was started with, or remove the folder to start again."
                )
    return saved
