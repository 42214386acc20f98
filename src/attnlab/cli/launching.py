"""`--launch slurm` for the commands that make runs: what was asked, handed over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnlab.errors import UserError

if TYPE_CHECKING:
    from attnlab.launch.config import LaunchConfig
    from attnlab.launch.records import Submission


def hand_over(launch: LaunchConfig, name: str, folder: Path, begin: list[str], again: list[str]) -> None:
    """A command as a job: `begin` writes to `folder`, `again` goes on there after a restart."""
    from attnlab.launch.submit import submit_run

    end(launch, folder, submit_run(launch, name, folder, begin, again))


def end(launch: LaunchConfig, folder: Path, submission: Submission) -> None:
    """Return at once, or follow the job and end as it does."""
    if launch.how.wait:
        from attnlab.launch.follow import follow

        raise typer.Exit(follow(folder, submission))


def refuse(**given: bool) -> None:
    """Options that make no sense for a job that begins later."""
    for name, value in given.items():
        if value:
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} and --launch slurm do not go together: leave out one of them.")


def must_exist(config: Any) -> None:
    """A file that is named must be there now, not only when the job has waited its turn."""
    from attnlab.config.recipe import flag_of, leaves, value_of
    from attnlab.config.sections import is_path

    for key, (field, _) in leaves(type(config)).items():
        value = value_of(config, key) if is_path(field) else None
        if value is not None and not Path(value).exists():
            raise UserError(f"{flag_of(key, field)}: {value}: there is no such file or folder.")
