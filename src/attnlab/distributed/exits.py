"""How the processes of a run ended, and which of them is the cause of a failure. Free of torch."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.base.interrupts import SIGNALS

PEER_LOST = 71  # exit code of a process that ended because another one was lost


@dataclass(frozen=True)
class ProcessExit:
    """How one process ended. Its output is kept if it is not the process that prints."""

    rank: int
    count: int
    code: int | None  # None: its machine never reported one
    killed: bool = False  # by the launcher, because another process had failed
    output: str = ""
    host: str = ""  # with several machines

    @property
    def failed(self) -> bool:
        """Ended, neither successfully nor because it was asked to stop."""
        return self.code not in (None, 0, *(128 + number for number in SIGNALS))

    @property
    def likelihood(self) -> int:
        """Order as the cause, the likeliest first: killed by a signal, failed, silent, lost a peer, killed by us."""
        if self.killed:
            return 4
        if self.code is None:
            return 2
        return 0 if self.code < 0 else 3 if self.code == PEER_LOST else 1

    def sentence(self) -> str:
        where = f", on {self.host}" if self.host else ""
        name = f"process {self.rank} of {self.count} (counted from 0{where})"
        if self.code is None:
            return f"{name} was lost with its machine, without an exit code."
        if self.code < 0:
            return f"{name} died: killed by signal {-self.code} ({signal.Signals(-self.code).name})."
        last = self.output.strip().splitlines()[-1:]
        reason = f": {last[0].removeprefix('error: ').removesuffix('.')}" if last else ""
        return f"{name} ended with exit code {self.code}{reason}."


def stopped_by(received: int, exits: Sequence[ProcessExit]) -> bool:
    """Whether all ended because of a signal that the launcher passed on."""
    codes = {process.code for process in exits if not process.killed} - {None}
    return any(codes) and codes <= {0, 128 + received, -received, PEER_LOST}


def cause(exits: Sequence[ProcessExit]) -> ProcessExit | None:
    """The process whose end ended the others; None if none has failed."""
    if not any(process.failed for process in exits):
        return None
    return min(
        (process for process in exits if process.failed or process.code is None),
        key=lambda process: (process.likelihood, process.rank),
    )
