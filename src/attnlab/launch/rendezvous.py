"""The launchers of a run, one per machine: like the processes, they meet at a store that the first launcher holds.

The first decides what is run and reports how it ended; the others send it the exits of their processes. A failure is
announced to all at once, so that no machine keeps waiting for a process that will not come.
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
from attnlab.distributed.exits import ProcessExit
from attnlab.distributed.team import MEETING_TIMEOUT, Rank

EXIT_TIMEOUT = 15.0  # seconds that other machines have to report their exits, once the processes here have ended
COMMAND, FAILED, ENDED = "attnlab/command", "attnlab/failed", "attnlab/ended"


class LauncherGroup:
    """This launcher among all; without a rank it is the only one."""

    def __init__(self, rank: Rank | None = None) -> None:
        self.index, self.count = (rank.rank, rank.count) if rank else (0, 1)
        self.address, port = (rank.address, rank.port) if rank else ("127.0.0.1", 0)
        self.first_is_lost = False  # and the store with it
        self.host = os.environ.get("SLURMD_NODENAME", platform.node()) if rank else ""
        try:
            self.store = TCPStore(
                self.address, port, is_master=self.first, timeout=MEETING_TIMEOUT, wait_for_workers=False
            )
        except RuntimeError as error:
            raise UserError(
                f"{self.host} cannot connect to the other machines at {self.address}:{port} "
                f"({str(error).splitlines()[0].rstrip('.')}): set MASTER_ADDR or MASTER_PORT to one that all can reach."
            ) from None

    @property
    def first(self) -> bool:
        return self.index == 0

    def rank_of(self, local: int, per_machine: int) -> Rank:
        """The rank of a process here, with `per_machine` of them on every machine."""
        rank = self.index * per_machine + local
        return Rank(rank, self.count * per_machine, local, per_machine, self.address, self.store.port)

    def from_first(self, command: Sequence[str]) -> list[str]:
        """The command of the first machine: a shared file system may show the others an older state of the run."""
        if self.first:
            self.store.set(COMMAND, json.dumps(list(command)))
        return [str(word) for word in json.loads(self.store.get(COMMAND))]

    def report_failure(self) -> None:
        with self._unless_first_is_lost():
            self.store.add(FAILED, 1)  # answered, unlike a set: the store has it when this returns

    def failed(self) -> bool:
        """Whether a process has failed, on any machine."""
        with self._unless_first_is_lost():
            return bool(self.store.check([FAILED]))
        return False

    @contextmanager
    def _unless_first_is_lost(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError:
            self.first_is_lost = True

    def finish_without_command(self) -> None:
        """Instead of running a command: the first waits until all others know that there is none."""
        self.gather([], MEETING_TIMEOUT.total_seconds())

    def gather(self, exits: Sequence[ProcessExit], timeout: float = EXIT_TIMEOUT) -> list[ProcessExit]:
        """On the first machine: the exits of all. A machine that does not report counts as one exit without a code."""
        if not self.first:
            with self._unless_first_is_lost():
                self.store.set(f"{ENDED}/{self.index}", json.dumps([asdict(process) for process in exits]))
            return list(exits)
        others = {index: f"{ENDED}/{index}" for index in range(1, self.count)}
        end = time.monotonic() + timeout
        while others and not self.store.check(list(others.values())) and time.monotonic() < end:
            time.sleep(0.05)
        gathered = list(exits)
        per_machine = len(exits)
        for index, key in others.items():
            if self.store.check([key]):
                gathered += [ProcessExit(**process) for process in json.loads(self.store.get(key))]
            else:
                gathered.append(ProcessExit(index * per_machine, self.count * per_machine, None))
        return gathered
