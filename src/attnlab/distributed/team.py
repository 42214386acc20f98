"""What the processes of a run must agree on. One process agrees with itself, so nobody has to ask how many there are.

Words go by gloo, over the CPU, in a group that waits as long as it takes: the first process may evaluate for hours
while the others wait. Gradients go by what is fastest for the device (nccl, gloo).
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
from attnlab.distributed.rank import NAMES, Place, find_place
from attnlab.distributed.sharding import not_yet_averaged

T = TypeVar("T")

MEETING = timedelta(minutes=10)  # until all are there
WORDS = timedelta(days=30)
LAUNCHER = "ATTNLAB_LAUNCHER"  # set by the lab's own: standard input ends when it is gone
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"  # torch's word for: the launcher holds the meeting place


class PeerLost(RunFailed):
    """Another process is gone. Why, only that one or its launcher can say: the exit code tells this from a cause."""

    exit_code = PEER_LOST


class Processes:
    """One process."""

    rank = 0
    count = 1
    local_count = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.rank == 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the processes."""
        return list(values)

    def largest(self, value: int) -> int:
        return value

    def from_first(self, make: Callable[[], T]) -> T:
        """What `make` gives in the first process, everywhere; what it raises there is raised everywhere."""
        return make()

    def together(self, action: Callable[[], None]) -> None:
        """Every process does it; if it fails in one, it fails in all."""
        action()

    def gather(self, value: T) -> list[T]:
        """The values of all processes in the order of their ranks, everywhere."""
        return [value]

    def spread(self, losses: nn.Module) -> nn.Module:
        """A module whose gradients are averaged over the processes as they are computed."""
        return losses

    def adding_up(self, losses: nn.Module) -> AbstractContextManager[None]:
        """Inside, gradients are added up here and not averaged yet."""
        return nullcontext()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, the end of another process is told as that."""
        yield


class Several(Processes):
    """One of several processes that have met."""

    def __init__(self, place: Place) -> None:
        self.rank, self.count, self.local_count = place.rank, place.count, place.local_count
        self.words = dist.new_group(backend="gloo", timeout=WORDS)

    def total(self, values: Sequence[float]) -> list[float]:
        summed = torch.tensor(values, dtype=torch.float64)
        with self.watching():
            dist.all_reduce(summed, group=self.words)
        return summed.tolist()

    def largest(self, value: int) -> int:
        found = torch.tensor(value)
        with self.watching():
            dist.all_reduce(found, dist.ReduceOp.MAX, group=self.words)
        return int(found)

    def from_first(self, make: Callable[[], T]) -> T:
        told: list[Any] = [None, None]
        failure: Exception | None = None
        if self.first:
            try:
                told[0] = make()
            except Exception as error:
                failure = error
                told[1] = _tellable(error)
        with self.watching():
            dist.broadcast_object_list(told, 0, group=self.words)
        if told[1] is not None:
            raise failure or told[1]
        made: T = told[0]
        return made

    def together(self, action: Callable[[], None]) -> None:
        failure: Exception | None = None
        try:
            action()
        except Exception as error:
            failure = error
        if self.largest(failure is not None):
            told = self.gather(_tellable(failure) if failure is not None else None)
            raise failure or next(error for error in told if error is not None)

    def gather(self, value: T) -> list[T]:
        found: list[Any] = [None] * self.count
        with self.watching():
            dist.all_gather_object(found, value, group=self.words)
        return found

    def spread(self, losses: nn.Module) -> nn.Module:
        from torch.distributed.fsdp import FSDPModule

        if any(isinstance(module, FSDPModule) for module in losses.modules()):
            return losses  # cut up, it sees to that itself
        # A step may leave a part of the model unused: a pooler nobody reads, a second objective of weight 0.
        return nn.parallel.DistributedDataParallel(losses, find_unused_parameters=True)

    def adding_up(self, losses: nn.Module) -> AbstractContextManager[None]:
        if isinstance(losses, nn.parallel.DistributedDataParallel):
            return losses.no_sync()
        return not_yet_averaged(losses)

    @contextmanager
    def watching(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not _is_of_a_peer(error):
                raise
            raise PeerLost("another process of the run is gone: what it said last is in its own output.") from error


def _tellable(error: Exception) -> Exception:
    """What others can raise as well; anything unforeseen keeps its traceback in the process it happened in."""
    foreseen = isinstance(error, RunFailed | UserError) or type(error).__module__.startswith("attnlab.")
    return error if foreseen else PeerLost(f"{type(error).__name__}: {error}")


def _is_of_a_peer(error: RuntimeError) -> bool:
    text = str(error).lower()
    return isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "nccl", "connection", "socket"))


ALONE = Processes()
_current = ALONE


def current() -> Processes:
    """The processes this one belongs to."""
    return _current


@contextmanager
def joined(device: str = "auto") -> Iterator[Processes]:
    """Meet the other processes, if there are any: what the environment says of them is taken out of it, since children
    of this process are no members, and `accelerate` is to care for the device and the precision only."""
    global _current
    place = find_place()
    if place is None:
        yield ALONE
        return
    if place.rank != 0:
        console.set_verbosity(console.Verbosity.SILENT)
    _meet(place, device)
    _current = Several(place)
    yield _current  # left without a word after a failure: the others may not be there to answer
    dist.destroy_process_group()
    _current = ALONE


def _meet(place: Place, device: str) -> None:
    cuda = device != "cpu" and torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(place.local_rank)
    os.environ.update(place.environment())
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=MEETING)
    except (dist.DistError, RuntimeError) as error:
        raise UserError(
            f"process {place.rank} of {place.count} found no others at {place.address}:{place.port} "
            f"({str(error).splitlines()[0].rstrip('.')}): are all started, and can they reach each other?"
        ) from None
    for name in (*NAMES, AGENT_STORE):
        os.environ.pop(name, None)
    if os.environ.pop(LAUNCHER, None):
        threading.Thread(target=_end_with_the_launcher, daemon=True).start()


def _end_with_the_launcher() -> None:
    """Standard input ends when the launcher is gone, even if it was killed: save and end, as if asked to."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
