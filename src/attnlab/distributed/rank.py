"""Who this process is among several: from the environment that torchrun, srun or the lab's launcher set. Free of torch.

They are started alike and differ in RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE; MASTER_ADDR and MASTER_PORT say
where they meet. srun has names of its own for the first four and leaves the meeting place to us.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attnlab.base.errors import UserError

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# torch would say that looking for unused parameters takes time, and how it found out that another process is gone.
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
FIRST_PORT, PORTS = 20_000, 10_000


@dataclass(frozen=True)
class Place:
    """One process among `count`, of which `local_count` are on this machine."""

    rank: int
    count: int
    local_rank: int
    local_count: int
    address: str
    port: int

    def environment(self) -> dict[str, str]:
        values = (self.rank, self.count, self.local_rank, self.local_count, self.address, self.port)
        return {name: str(value) for name, value in zip(NAMES, values, strict=True)}


def find_place(environment: Mapping[str, str] = os.environ) -> Place | None:
    """This process's place, or None when it was started alone."""
    if int(environment.get("WORLD_SIZE", 1)) > 1:
        return _from_torchrun(environment)
    # Of a step, not of the job: a batch script alone also knows how many tasks its job may have.
    if int(environment.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        return _from_srun(environment, _first_address)
    return None


def _from_torchrun(environment: Mapping[str, str]) -> Place:
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in environment]
    if missing:
        raise UserError(
            f"WORLD_SIZE is {environment['WORLD_SIZE']} in the environment and {missing[0]} is not set: start with "
            "torchrun, srun or --processes, or unset WORLD_SIZE."
        )
    rank, count = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    return Place(
        rank,
        count,
        int(environment.get("LOCAL_RANK", rank)),
        int(environment.get("LOCAL_WORLD_SIZE", count)),
        environment["MASTER_ADDR"],
        int(environment["MASTER_PORT"]),
    )


def _from_srun(environment: Mapping[str, str], address_of: Callable[[str], str]) -> Place:
    count, nodes = int(environment["SLURM_STEP_NUM_TASKS"]), int(environment.get("SLURM_STEP_NUM_NODES", 1))
    # '2(x3),1' for four nodes: two processes on each of three, one on the last
    here = environment.get("SLURM_STEP_TASKS_PER_NODE", str(count)).split("(")[0].split(",")[0]
    address = "127.0.0.1" if nodes == 1 else address_of(environment["SLURM_STEP_NODELIST"])
    job, step = int(environment["SLURM_JOB_ID"]), int(environment.get("SLURM_STEP_ID", 0))
    return Place(
        int(environment["SLURM_PROCID"]),
        count,
        int(environment["SLURM_LOCALID"]),
        int(here),
        environment.get("MASTER_ADDR", address),
        int(environment.get("MASTER_PORT", FIRST_PORT + (7 * job + step) % PORTS)),
    )


def _first_address(nodes: str) -> str:
    """Where Slurm reaches the first of 'n[1-2]': a node's name need not be one of the network."""
    first = _scontrol("show", "hostnames", nodes).split()[0]
    found = re.search(r"\bNodeAddr=(\S+)", _scontrol("show", "node", first))
    return found[1] if found else first


def _scontrol(*words: str) -> str:
    return subprocess.run(["scontrol", *words], capture_output=True, text=True, check=True).stdout
