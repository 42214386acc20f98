"""`--launch slurm` for the commands that make runs: check the options, submit the command, wait if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from attnlab.base.errors import UserError

if TYPE_CHECKING:
    from attnlab.config import MachineSection, Section
    from attnlab.launch.config import LaunchConfig, SlurmSection
    from attnlab.launch.records import Submission


def submit_command(
    launch: LaunchConfig, name: str, folder: Path, begin: list[str], again: list[str], on_each: int = 1
) -> None:
    """Submit a command as a job: `begin` writes to `folder`, `again` resumes there after a restart; on several nodes in
    `on_each` processes per node."""
    from attnlab.launch.submit import submit_run

    finish_submission(launch, folder, submit_run(launch, name, folder, begin, again, on_each))


def processes_per_node(slurm: SlurmSection, machine: MachineSection) -> int:
    """The number of processes of a new run per node: the given one, else one per requested GPU."""
    gpus = slurm.gpus if machine.device in ("auto", "cuda") else None
    processes = machine.processes if "processes" in machine.model_fields_set else gpus or 1
    if gpus and processes > gpus:
        raise UserError(f"--processes {processes} and --gpus {gpus}: each process of a node needs its own GPU.")
    return processes


def resumed_processes_per_node(slurm: SlurmSection, machine: MachineSection) -> int:
    """The number of processes of a resumed run per node: in total it keeps the number it started with."""
    processes = machine.processes
    if processes % slurm.nodes:
        raise UserError(
            f"--nodes {slurm.nodes}: the run keeps the number of processes it started with, {processes}, which is not "
            f"a multiple of {slurm.nodes}."
        )
    return processes // slurm.nodes


def require_one_node(launch: LaunchConfig, what: str) -> None:
    if launch.slurm.nodes > 1:
        raise UserError(f"--nodes {launch.slurm.nodes}: each run of {what} uses one process: leave nodes at 1.")


def finish_submission(launch: LaunchConfig, folder: Path, submission: Submission) -> None:
    """Return at once, or with --wait follow the job and end with its exit code."""
    if launch.how.wait:
        from attnlab.launch.follow import follow

        raise typer.Exit(follow(folder, submission))


def refuse_with_slurm(**options: bool) -> None:
    """A UserError for options that make no sense for a job that starts later."""
    for name, given in options.items():
        if given:
            flag = name.replace("_", "-")
            raise UserError(f"--{flag} and --launch slurm do not go together: leave out one of them.")


def check_files_exist(config: Section) -> None:
    """The files of a configuration must exist now, not only when the job starts."""
    from attnlab.config.recipe import flag_of, leaves, value_of
    from attnlab.config.sections import is_path

    for key, (field, _) in leaves(type(config)).items():
        value = value_of(config, key) if is_path(field) else None
        if value is not None and not Path(value).exists():
            raise UserError(f"{flag_of(key, field)}: {value}: there is no such file or folder.")
