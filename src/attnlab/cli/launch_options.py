"""`--launch slurm` for the commands that make runs: what was asked, handed over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnlab.base.errors import UserError

if TYPE_CHECKING:
    from attnlab.config import MachineSection
    from attnlab.launch.config import LaunchConfig, SlurmSection
    from attnlab.launch.records import Submission


def hand_over(
    launch: LaunchConfig, name: str, folder: Path, begin: list[str], again: list[str], on_each: int = 1
) -> None:
    """A command as a job: `begin` writes to `folder`, `again` goes on there after a restart; on several nodes in
    `on_each` processes a node."""
    from attnlab.launch.submit import submit_run

    end(launch, folder, submit_run(launch, name, folder, begin, again, on_each))


def on_each_node(slurm: SlurmSection, machine: MachineSection) -> int:
    """How many processes a new run has on a node: what was said, else one for each GPU that was asked for."""
    gpus = slurm.gpus if machine.device in ("auto", "cuda") else None
    asked = machine.processes if "processes" in machine.model_fields_set else gpus or 1
    if gpus and asked > gpus:
        raise UserError(f"--processes {asked} and --gpus {gpus}: each process of a node needs a GPU of its own.")
    return asked


def divided(slurm: SlurmSection, machine: MachineSection) -> int:
    """How many a run that was begun has on a node: it keeps their number, wherever it goes on."""
    begun = machine.processes
    if begun % slurm.nodes:
        raise UserError(
            f"--nodes {slurm.nodes}: the run goes on in as many processes as it began with, {begun}, and these cannot "
            "be shared out evenly."
        )
    return begun // slurm.nodes


def on_one_node(launch: LaunchConfig, what: str) -> None:
    if launch.slurm.nodes > 1:
        raise UserError(f"--nodes {launch.slurm.nodes}: each run of {what} is made in one process: leave nodes at 1.")


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
