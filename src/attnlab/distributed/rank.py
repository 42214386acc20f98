"""Which of several processes this one is: from the environment of torchrun, srun or the lab's launcher. Free of torch.

The processes differ in RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, and meet at MASTER_ADDR and MASTER_PORT.
srun has other names for the first four and defines no address: it is derived here.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attnlab.base.errors import UserError

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Hides torch's warning about unused parameters and its stack traces after the loss of a peer.
QUIET_TORCH = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
FIRST_PORT, PORTS = 20_000, 10_000


@dataclass(frozen=True)
class Rank:
    """One process among `count`, of which `local_count` are on this machine."""

    rank: int
    count: int
    local_rank: int
    local_count: int
    address: str
    port: int

    def environment(self) -> dict[str, str]:
        values = (self.rank, self.count, self.local_rank, self.local_count, self.address, self.port)
        return {name: str(value) for name, value in zip(VARIABLES, values, strict=True)}


def find_rank(environment: Mapping[str, str] = os.environ) -> Rank | None:
    """The rank of this process, or None if it was started alone."""
    if int(environment.get("WORLD_SIZE", 1)) > 1:
        return _from_torchrun(environment)
    # The step's variables, not the job's: a batch script, which is one process, has those too.
    if int(environment.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        return _from_srun(environment, _first_address)
    return None


def _from_torchrun(environment: Mapping[str, str]) -> Rank:
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in environment]
    if missing:
        raise UserError(
            f"WORLD_SIZE is {environment['WORLD_SIZE']} in the environment and {missing[0]} is not set: start with "
            "torchrun, srun or --processes, or unset WORLD_SIZE."
        )
    rank, count = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    return Rank(
        rank,
        count,
        int(environment.get("LOCAL_RANK", rank)),
        int(environment.get("LOCAL_WORLD_SIZE", count)),
        environment["MASTER_ADDR"],
        int(environment["MASTER_PORT"]),
    )


def _from_srun(environment: Mapping[str, str], address_of: Callable[[str], str]) -> Rank:
    count, nodes = int(environment["SLURM_STEP_NUM_TASKS"]), int(environment.get("SLURM_STEP_NUM_NODES", 1))
    # '2(x3),1' means four nodes: two processes on each of the first three, one on the last
    here = environment.get("SLURM_STEP_TASKS_PER_NODE", str(count)).split("(")[0].split(",")[0]
    address = "127.0.0.1" if nodes == 1 else address_of(environment["SLURM_STEP_NODELIST"])
    job, step = int(environment["SLURM_JOB_ID"]), int(environment.get("SLURM_STEP_ID", 0))
    return Rank(
        int(environment["SLURM_PROCID"]),
        count,
        int(environment["SLURM_LOCALID"]),
        int(here),
        environment.get("MASTER_ADDR", address),
        int(environment.get("MASTER_PORT", FIRST_PORT + (7 * job + step) % PORTS)),
    )


def _first_address(nodes: str) -> str:
    """The address of the first of 'n[1-2]': a node's name need not resolve on the network."""
    first = _scontrol("show", "hostnames", nodes).split()[0]
    address = re.search(r"\bNodeAddr=(\S+)", _scontrol("show", "node", first))
    return address[1] if address else first


def _scontrol(*words: str) -> str:
    return subprocess.run(["scontrol", *words], capture_output=True, text=True, check=True).stdout
