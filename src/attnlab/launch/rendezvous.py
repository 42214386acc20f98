"""The launchers of a run, one a machine: they meet at a store that the first one holds, as do the processes.

The first says what is run and how it ended; the others tell it how their processes ended. That one has failed everybody
hears at once, so that no machine goes on waiting for what will not come.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from torch.distributed import TCPStore

from attnlab.base.errors import UserError
from attnlab.distributed.exits import Ending
from attnlab.distributed.rank import Place
from attnlab.distributed.team import MEETING

LAST_WORDS = 15.0  # seconds that other machines have to say how their processes ended, once those here have
COMMAND, FAILED, ENDED = "attnlab/command", "attnlab/failed", "attnlab/ended"


class Machines:
    """This one among all; without a place it is the only one."""

    def __init__(self, place: Place | None = None) -> None:
        self.index, self.count = (place.rank, place.count) if place else (0, 1)
        self.address, port = (place.address, place.port) if place else ("127.0.0.1", 0)
        self.alone = False  # the first launcher is gone, and the store with it
        self.host = os.environ.get("SLURMD_NODENAME", platform.node()) if place else ""
        try:
            self.store = TCPStore(self.address, port, is_master=self.first, timeout=MEETING, wait_for_workers=False)
        except RuntimeError as error:
            raise UserError(
                f"{self.host} cannot meet the other machines at {self.address}:{port} "
                f"({str(error).splitlines()[0].rstrip('.')}): set MASTER_ADDR or MASTER_PORT to a place they can."
            ) from None

    @property
    def first(self) -> bool:
        return self.index == 0

    def place(self, local: int, here: int) -> Place:
        """Of a process, with `here` of them on every machine."""
        rank = self.index * here + local
        return Place(rank, self.count * here, local, here, self.address, self.store.port)

    def from_first(self, command: Sequence[str]) -> list[str]:
        """The command as the first machine has it: a shared file system may show the others a run as it was before."""
        if self.first:
            self.store.set(COMMAND, json.dumps(list(command)))
        return [str(word) for word in json.loads(self.store.get(COMMAND))]

    def tell_of_failure(self) -> None:
        with self._as_long_as_it_is_there():
            self.store.set(FAILED, "")

    def failed(self) -> bool:
        """Whether a process has, on any machine."""
        with self._as_long_as_it_is_there():
            return bool(self.store.check([FAILED]))
        return False

    @contextmanager
    def _as_long_as_it_is_there(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError:
            self.alone = True

    def say_there_is_nothing_to_do(self) -> None:
        """Instead of running a command: the first stays until all others know."""
        self.gather([], MEETING.total_seconds())

    def gather(self, endings: Sequence[Ending], patience: float = LAST_WORDS) -> list[Ending]:
        """On the first machine: the endings of all. One that does not say is one ending without a code."""
        if not self.first:
            with self._as_long_as_it_is_there():
                self.store.set(f"{ENDED}/{self.index}", json.dumps([asdict(ending) for ending in endings]))
            return list(endings)
        others = {index: f"{ENDED}/{index}" for index in range(1, self.count)}
        end = time.monotonic() + patience
        while others and not self.store.check(list(others.values())) and time.monotonic() < end:
            time.sleep(0.05)
        found = list(endings)
        here = len(endings)
        for index, key in others.items():
            if self.store.check([key]):
                found += [Ending(**ending) for ending in json.loads(self.store.get(key))]
            else:
                found.append(Ending(index * here, self.count * here, None))
        return found
