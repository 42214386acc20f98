"""How the processes of a run ended, and which of them is the cause when it failed. Free of torch."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.base.interrupts import SIGNALS

PEER_LOST = 71  # exit code of a process that ended because another one was gone


@dataclass(frozen=True)
class Ending:
    """Of one process. What it said is kept if it was not the one that speaks."""

    rank: int
    count: int
    code: int | None  # None: its machine never said
    killed: bool = False  # by the launcher, since another had failed
    said: str = ""
    host: str = ""  # where there are several

    @property
    def failed(self) -> bool:
        """Ended, and neither well nor because it was asked to stop."""
        return self.code not in (None, 0, *(128 + number for number in SIGNALS))

    @property
    def blame(self) -> int:
        """Smallest for a sudden death; then a failure, a silence, the loss of another, and what was done from here."""
        if self.killed:
            return 4
        if self.code is None:
            return 2
        return 0 if self.code < 0 else 3 if self.code == PEER_LOST else 1

    def sentence(self) -> str:
        where = f", on {self.host}" if self.host else ""
        name = f"process {self.rank} of {self.count} (counted from 0{where})"
        if self.code is None:
            return f"{name} is gone, and its machine too, without a word."
        if self.code < 0:
            return f"{name} died: killed by signal {-self.code} ({signal.Signals(-self.code).name})."
        last = self.said.strip().splitlines()[-1:]
        reason = f": {last[0].removeprefix('error: ').removesuffix('.')}" if last else ""
        return f"{name} ended with exit code {self.code}{reason}."


def stopped_by(received: int, endings: Sequence[Ending]) -> bool:
    """Whether all ended because of a signal that the launcher passed on."""
    codes = {ending.code for ending in endings if not ending.killed} - {None}
    return any(codes) and codes <= {0, 128 + received, -received, PEER_LOST}


def cause(endings: Sequence[Ending]) -> Ending | None:
    """The process whose end ended the others; None if none has failed."""
    if not any(ending.failed for ending in endings):
        return None
    return min(
        (ending for ending in endings if ending.failed or ending.code is None),
        key=lambda ending: (ending.blame, ending.rank),
    )
