"""Settings of a submission to Slurm: flags of any command that makes runs, over a profile file. Free of torch."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from attnlab.base.errors import UserError
from attnlab.config import FilePath, Section, option
from attnlab.config.recipe import Key, flag_of, lay_over, leaves, read_recipe

_CLOCK = re.compile(r"^(?:(?P<days>\d+)-(?=\d))?(?P<clock>\d+(?::\d+){0,2})$")


def minutes(text: str) -> int:
    """A time as Slurm writes it, in whole minutes: 90, 30:00, 2:00:00, 1-12, 1-12:30, 1-12:30:00."""
    match = _CLOCK.match(text.strip())
    if not match:
        raise ValueError(f"expected a time such as 90 (minutes), 2:00:00 or 1-12:00:00, got {text!r}")
    parts = [int(part) for part in match["clock"].split(":")]
    if match["days"] is not None:  # D-H, D-H:M, D-H:M:S
        hours, mins, secs = [*parts, 0, 0][:3]
    else:  # M, M:S, H:M:S
        hours, mins, secs = parts if len(parts) == 3 else (0, *[*parts, 0][:2])
    seconds = ((int(match["days"] or 0) * 24 + hours) * 60 + mins) * 60 + secs
    if seconds <= 0:
        raise ValueError("a job needs at least a minute")
    return -(-seconds // 60)


class WhereSection(Section):
    topic: ClassVar[str] = "Where it runs"
    common: ClassVar[tuple[str, ...] | None] = ()

    launch: Literal["here", "slurm"] = option("here", "here, or slurm: submit the command to a cluster and return.")
    wait: bool = option(False, "Follow the job until it ends, and end with its exit code.")
    profile: FilePath = option(
        None, "YAML file with Slurm settings (default: $ATTNLAB_SLURM, else ~/.config/attnlab/slurm.yaml)."
    )


class SlurmSection(Section):
    """A profile file has these keys; flags override it."""

    topic: ClassVar[str] = "Slurm"
    common: ClassVar[tuple[str, ...] | None] = ()

    partition: str | None = option(None, "Partition (default: the cluster's).")
    time: str = option("1:00:00", "Time limit, in minutes or as 2:30:00 or 1-12:00:00.")
    gpus: int | None = option(None, "GPUs on each node.", ge=0)
    nodes: int = option(1, "Number of nodes; --processes is the number of processes on each.", ge=1)
    memory: float | None = option(None, "Memory of each node, in GiB.", gt=0)
    cpus: int | None = option(None, "CPU cores on each node.", ge=1)
    account: str | None = option(None, "Account the time is charged to.")
    qos: str | None = option(None, "Quality of service.")
    constraint: str | None = option(None, "Features the node must have.")
    sbatch: list[str] = option([], "More lines for sbatch, separated by ';': --exclusive; --mail-type=END,FAIL")
    warning: int | None = option(
        None, "Seconds before the time limit at which a run saves (default: 120, or a quarter of a short limit).", ge=1
    )
    restarts: int = option(20, "How often a job that ran out of time is requeued.", ge=0)

    @field_validator("time", mode="before")
    @classmethod
    def _time(cls, value: Any) -> str:
        minutes(str(value))
        return str(value)

    @field_validator("sbatch", mode="before")
    @classmethod
    def _lines(cls, value: Any) -> Any:
        lines = value.split(";") if isinstance(value, str) else value
        lines = [str(line).strip() for line in lines] if isinstance(lines, list) else lines
        for line in lines if isinstance(lines, list) else []:
            if line and not re.match(r"^--[a-z][a-z-]*(=.*)?$", line):
                raise ValueError(f"{line!r} is not an option of sbatch: write it as --name or --name=value")
        return [line for line in lines if line] if isinstance(lines, list) else lines

    @model_validator(mode="after")
    def _room(self) -> SlurmSection:
        if self.warning is not None and self.warning >= 60 * self.minutes:
            raise ValueError(f"a warning {self.warning} s before the end leaves no time to run in {self.minutes} min")
        return self

    @property
    def minutes(self) -> int:
        return minutes(self.time)

    @property
    def warning_seconds(self) -> int:
        """Seconds before the time limit at which a run saves."""
        return self.warning or min(120, 15 * self.minutes)


class LaunchConfig(Section):
    """Flags of a command that makes one run."""

    how: WhereSection = WhereSection()
    slurm: SlurmSection = SlurmSection()


class ArraySection(Section):
    topic: ClassVar[str] = "Slurm"
    common: ClassVar[tuple[str, ...] | None] = ()

    at_once: int | None = option(None, "How many runs are active at the same time (default: as many as fit).", ge=1)


class ArrayLaunchConfig(LaunchConfig):
    """Flags of a command that makes many runs."""

    array: ArraySection = ArraySection()


def launch_settings(kind: type[LaunchConfig], flags: Mapping[Key, Any]) -> Any:
    """The checked settings of a submission, profile included; None if the command runs here."""
    if flags.get(("how", "launch"), "here") == "here":
        for key in flags:
            if key != ("how", "launch"):
                raise UserError(f"{flag_of(key, leaves(kind)[key][0])} is for a cluster: add --launch slurm.")
        return None
    profile = _profile(flags.get(("how", "profile")))
    values, origins = read_recipe(profile) if profile is not None else ({}, {})
    slurm_origins = {("slurm", *key): where for key, where in origins.items()}
    return lay_over(kind, {"slurm": values} if values else {}, flags, slurm_origins)


def _profile(given: str | None) -> Path | None:
    """The profile file: the given one, else the one in the environment, else the default one if it exists."""
    name = given or os.environ.get("ATTNLAB_SLURM")
    if name:
        path = Path(name).expanduser()
        if not path.is_file():
            source = "--profile" if given else "ATTNLAB_SLURM"
            raise UserError(f"{source}: {path}: there is no such profile.")
        return path
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    default = home / "attnlab" / "slurm.yaml"
    return default if default.is_file() else None
