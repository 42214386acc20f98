"""What Slurm reports: its queue, its partitions and nodes, read from the output of its commands."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from dataclasses import dataclass

from attnlab.base.errors import UserError

ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}


@dataclass(frozen=True)
class QueuedJob:
    """A job, or a task of an array, in squeue."""

    id: str  # 12, or 12_3
    state: str
    reason: str
    partition: str
    time: str
    node: str

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def slurm_output(*command: str) -> str:
    """The output of one of Slurm's commands; a UserError without Slurm or if the command fails."""
    if shutil.which(command[0]) is None:
        raise UserError(f"Slurm is not installed here: there is no {command[0]}; use a login node of a cluster.")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{command[0]}: {last_line(done.stderr) or f'exit code {done.returncode}'}")
    return done.stdout


def last_line(text: str) -> str:
    """Slurm's error message, without the name of the command in front."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].partition("error: ")[2] or lines[-1] if lines else ""


def queue() -> dict[str, QueuedJob]:
    """The user's jobs by id, recently ended ones included."""
    form = "%i|%T|%r|%P|%M|%N"
    user = getpass.getuser()
    lines = slurm_output("squeue", "--noheader", "--array", "--states=all", f"--user={user}", f"--format={form}")
    jobs = [QueuedJob(*line.strip().split("|")) for line in lines.splitlines() if line.strip()]
    return {job.id: job for job in jobs}


def state_of(job: str) -> str:
    """A job's state now; '' if it is not in the queue."""
    queued = queue().get(job)
    return queued.state if queued else ""


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of a partition with the same properties."""

    partition: str
    available: str
    time_limit: str
    nodes: str
    state: str
    cpus: str
    memory_mib: str
    gres: str
    names: str


def partitions() -> list[NodeGroup]:
    """The partitions and nodes that sinfo lists."""
    lines = slurm_output("sinfo", "--noheader", "--format=%R|%a|%l|%D|%T|%c|%m|%G|%N").splitlines()
    return [NodeGroup(*line.strip().split("|")) for line in lines if line.strip()]
