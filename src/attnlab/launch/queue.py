"""What the cluster says: its queue, its partitions and nodes. Asked with Slurm's own commands, as text."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from dataclasses import dataclass

from attnlab.base.errors import UserError

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}


@dataclass(frozen=True)
class Queued:
    """A job, or a task of an array, as squeue knows it."""

    id: str  # 12, or 12_3
    state: str
    reason: str
    partition: str
    time: str
    node: str

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def ask(*command: str) -> str:
    """What one of Slurm's commands prints; a cluster that is not there is told in one sentence."""
    if shutil.which(command[0]) is None:
        raise UserError(f"Slurm is not installed here: there is no {command[0]}; use a login node of a cluster.")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{command[0]}: {last_line(done.stderr) or f'exit code {done.returncode}'}")
    return done.stdout


def last_line(text: str) -> str:
    """What Slurm has to say, without the name of the command in front."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].partition("error: ")[2] or lines[-1] if lines else ""


def queue() -> dict[str, Queued]:
    """The user's jobs by id, those that ended a short while ago included."""
    form = "%i|%T|%r|%P|%M|%N"
    lines = ask("squeue", "--noheader", "--array", "--states=all", f"--user={getpass.getuser()}", f"--format={form}")
    found = [Queued(*line.strip().split("|")) for line in lines.splitlines() if line.strip()]
    return {job.id: job for job in found}


def state_of(job: str) -> str:
    """A job's state now; '' for one Slurm has forgotten."""
    known = queue().get(job)
    return known.state if known else ""


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are alike."""

    partition: str
    available: str
    time_limit: str
    nodes: str
    state: str
    cpus: str
    memory_mib: str
    gres: str
    names: str


def partitions() -> list[Nodes]:
    """What sinfo knows."""
    lines = ask("sinfo", "--noheader", "--format=%R|%a|%l|%D|%T|%c|%m|%G|%N").splitlines()
    return [Nodes(*line.strip().split("|")) for line in lines if line.strip()]
