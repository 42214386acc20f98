"""What the processes of a run must agree on. The same calls work in a single process.

Objects are sent by gloo, over the CPU, in a group with a very long timeout: the first process may score a large test
set for hours while the others wait. Gradients are sent by the fastest backend of the device (nccl, gloo).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.base.randomness import Tensors, load_random, random_tensors
from attnlab.distributed import sharding
from attnlab.distributed.exits import PEER_LOST

S = TypeVar("S")
T = TypeVar("T")
Guard = Callable[[], AbstractContextManager[None]]

MEETING_TIMEOUT = timedelta(minutes=10)  # until all processes are connected
OBJECT_TIMEOUT = timedelta(days=30)
LAUNCHER = "ATTNLAB_LAUNCHER"  # set by the lab's launcher: standard input ends when it ends
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"  # torch's variable for: the launcher holds the store


class PeerLost(RunFailed):
    """Another process was lost. The exit code distinguishes this from the cause, which that process reports."""

    exit_code = PEER_LOST


class Processes:
    """A single process; the base of several."""

    rank = 0
    count = 1
    local_count = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the processes."""
        return list(values)

    def largest(self, value: int) -> int:
        return value

    def from_first(self, make: Callable[[], T]) -> T:
        """What `make` returns in the first process, in all; what it raises there is raised in all."""
        return make()

    def together(self, action: Callable[[], None]) -> None:
        """Run `action` in every process; if it fails in one, it fails in all."""
        action()

    def gather(self, value: T) -> list[T]:
        """The values of all processes in the order of their ranks, in all."""
        return [value]

    def share(self, items: Sequence[S], work: Callable[[S], T], guard: Guard = nullcontext) -> list[T]:
        """What `work` returns for each item, in order, in all; each process does its part, inside `guard`."""
        with guard():
            return [work(item) for item in items]

    def spread(self, losses: nn.Module) -> nn.Module:
        """A module whose gradients are averaged over the processes as they are computed."""
        return losses

    def adding_up(self, losses: nn.Module) -> AbstractContextManager[None]:
        """Inside, gradients are accumulated in this process and not averaged yet."""
        return nullcontext()

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """The whole of a sharded tensor; all processes must call this together."""
        return tensor

    def shard_like(self, tensor: Tensor, other: Tensor) -> Tensor:
        """A whole tensor, sharded like `other` if that is sharded."""
        return tensor

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, the loss of another process raises PeerLost."""
        yield


class ConnectedProcesses(Processes):
    """One of several processes that are connected."""

    def __init__(self, rank: Rank) -> None:
        self.rank, self.count, self.local_count = rank.rank, rank.count, rank.local_count
        self.objects = dist.new_group(backend="gloo", timeout=OBJECT_TIMEOUT)

    def full_tensor(self, tensor: Tensor) -> Tensor:
        return sharding.full_tensor(tensor)

    def shard_like(self, tensor: Tensor, other: Tensor) -> Tensor:
        return sharding.shard_like(tensor, other)

    def total(self, values: Sequence[float]) -> list[float]:
        summed = torch.tensor(values, dtype=torch.float64)
        with self.watching():
            dist.all_reduce(summed, group=self.objects)
        return summed.tolist()

    def largest(self, value: int) -> int:
        maximum = torch.tensor(value)
        with self.watching():
            dist.all_reduce(maximum, dist.ReduceOp.MAX, group=self.objects)
        return int(maximum)

    def from_first(self, make: Callable[[], T]) -> T:
        message: list[Any] = [None, None]  # what was made, or the error
        failure: Exception | None = None
        if self.first:
            try:
                message[0] = make()
            except Exception as error:
                failure = error
                message[1] = _shareable(error)
        with self.watching():
            dist.broadcast_object_list(message, 0, group=self.objects)
        if message[1] is not None:
            raise failure or message[1]
        made: T = message[0]
        return made

    def together(self, action: Callable[[], None]) -> None:
        failure: Exception | None = None
        try:
            action()
        except Exception as error:
            failure = error
        if self.largest(failure is not None):
            errors = self.gather(_shareable(failure) if failure is not None else None)
            raise failure or next(error for error in errors if error is not None)

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.count
        with self.watching():
            dist.all_gather_object(values, value, group=self.objects)
        return values

    def share(self, items: Sequence[S], work: Callable[[S], T], guard: Guard = nullcontext) -> list[T]:
        mine: list[T] = []

        def work_on_mine() -> None:
            with guard():
                mine.extend(work(items[n]) for n in range(self.rank, len(items), self.count))

        self.together(work_on_mine)
        parts = self.gather(mine)
        return [parts[n % self.count][n // self.count] for n in range(len(items))]

    def spread(self, losses: nn.Module) -> nn.Module:
        from torch.distributed.fsdp import FSDPModule

        if any(isinstance(module, FSDPModule) for module in losses.modules()):
            return losses  # a sharded model averages its gradients itself
        # A step may leave a part of the model unused: a pooler, a second objective of weight 0.
        return nn.parallel.DistributedDataParallel(losses, find_unused_parameters=True)

    def adding_up(self, losses: nn.Module) -> AbstractContextManager[None]:
        if isinstance(losses, nn.parallel.DistributedDataParallel):
            return losses.no_sync()
        return sharding.without_averaging(losses)

    @contextmanager
    def watching(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not _is_of_peer(error):
                raise
            raise PeerLost("another process of the run was lost: its own output contains the reason.") from error


def _shareable(error: Exception) -> Exception:
    """What other processes raise for it; an unexpected error keeps its traceback in the process it happened in."""
    expected = isinstance(error, RunFailed | UserError) or type(error).__module__.startswith("attnlab.")
    return error if expected else PeerLost(f"{type(error).__name__}: {error}")


def _is_of_peer(error: RuntimeError) -> bool:
    text = str(error).lower()
    return isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "nccl", "connection", "socket"))


ALONE = Processes()
_current = ALONE


def current() -> Processes:
    """The processes this one belongs to."""
    return _current


_share: Callable[..., list[Any]] = ALONE.share


@contextmanager
def sharing(processes: Processes, guard: Guard) -> Iterator[None]:
    """Inside, which all processes enter together, they share the items of `shared`; each works inside `guard`."""
    global _share
    before, _share = _share, partial(processes.share, guard=guard)
    try:
        yield
    finally:
        _share = before


def shared(items: Sequence[S], work: Callable[[S], T]) -> list[T]:
    """What `work` returns for each item, in order: an evaluation does this with its batches."""
    return _share(items, work)


@contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Connect to the other processes, if there are any.

    Their variables are removed from the environment: children of this process are not members, and `accelerate` is
    used for the device and the precision only.
    """
    global _current
    rank = find_rank()
    if rank is None:
        yield ALONE
        return
    if rank.rank != 0:
        console.set_verbosity(console.Verbosity.SILENT)
    _connect(rank, device)
    _current = ConnectedProcesses(rank)
    yield _current  # after a failure the group is not destroyed: that would wait for processes that may be lost
    dist.destroy_process_group()
    _current = ALONE


def _connect(rank: Rank, device: str) -> None:
    cuda = device != "cpu" and torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(rank.local_rank)
    os.environ.update(rank.environment())
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=MEETING_TIMEOUT)
    except (dist.DistError, RuntimeError) as error:
        raise UserError(
            f"process {rank.rank} of {rank.count} found no others at {rank.address}:{rank.port} "
            f"({str(error).splitlines()[0].rstrip('.')}): check that all are started and can reach each other."
        ) from None
    for name in (*VARIABLES, AGENT_STORE):
        os.environ.pop(name, None)
    if os.environ.pop(LAUNCHER, None):
        threading.Thread(target=_end_with_launcher, daemon=True).start()


def _end_with_launcher() -> None:
    """Standard input ends when the launcher ends, even if it was killed: then save and end, as after SIGTERM."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


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


def random_of_all(processes: Processes) -> tuple[Tensors, dict[str, Any]]:
    """The generator states of all processes: those of the first, and the others' under `process N/`."""
    tensors, plain = random_tensors()
    packed = {name: tensor.numpy() for name, tensor in tensors.items()}
    for n, (more, words) in enumerate(processes.gather((packed, plain))[1:], start=1):
        tensors |= {f"process {n}/{name}": torch.from_numpy(array) for name, array in more.items()}
        plain |= {f"process {n}/{name}": value for name, value in words.items()}
    return tensors, plain


def load_random_of(rank: int, tensors: Tensors, plain: dict[str, Any]) -> None:
    """Load the states of one process from those of `random_of_all`."""
    prefix = f"process {rank}/" if rank else ""
    names = [name for name in tensors if name.startswith(prefix) and "/" not in name.removeprefix(prefix)]
    words = ("numpy", "python")
    load_random(
        {name.removeprefix(prefix): tensors[name] for name in names}, {name: plain[prefix + name] for name in words}
    )
