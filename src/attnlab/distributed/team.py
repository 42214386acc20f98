"""What the processes of a run must agree on. The same calls work in a single process.

Objects are sent by gloo, over the CPU, in a group with a very long timeout: the first process may evaluate for hours
while the others wait. Gradients are sent by the fastest backend of the device (nccl, gloo).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.distributed.exits import PEER_LOST
from attnlab.distributed.rank import VARIABLES, Rank, find_rank
from attnlab.distributed.sharding import without_averaging

T = TypeVar("T")

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

    def spread(self, losses: nn.Module) -> nn.Module:
        """A module whose gradients are averaged over the processes as they are computed."""
        return losses

    def adding_up(self, losses: nn.Module) -> AbstractContextManager[None]:
        """Inside, gradients are accumulated in this process and not averaged yet."""
        return nullcontext()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, the loss of another process raises PeerLost."""
        yield


class ConnectedProcesses(Processes):
    """One of several processes that are connected."""

    def __init__(self, rank: Rank) -> None:
        self.rank, self.count, self.local_count = rank.rank, rank.count, rank.local_count
        self.objects = dist.new_group(backend="gloo", timeout=OBJECT_TIMEOUT)

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

    def spread(self, losses: nn.Module) -> nn.Module:
        from torch.distributed.fsdp import FSDPModule

        if any(isinstance(module, FSDPModule) for module in losses.modules()):
            return losses  # a sharded model averages its gradients itself
        # A step may leave a part of the model unused: a pooler, a second objective of weight 0.
        return nn.parallel.DistributedDataParallel(losses, find_unused_parameters=True)

    def adding_up(self, losses: nn.Module) -> AbstractContextManager[None]:
        if isinstance(losses, nn.parallel.DistributedDataParallel):
            return losses.no_sync()
        return without_averaging(losses)

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
