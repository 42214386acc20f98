"""Start a command several times on this machine and stand by: signals are passed on, and a death is told.

torchrun would do, but it gives a run 30 seconds to save when it is asked to stop, knows nothing of run folders, and a
Ctrl-C reaches its children twice. What matters is taken from torch: the meeting place is a store held here, at a port
the system chose, so that no two runs can meet.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from filelock import FileLock
from torch.distributed import TCPStore

from attnlab import console
from attnlab.processes.place import Place
from attnlab.processes.team import AGENT_STORE, LAUNCHER, PeerLost
from attnlab.runs import RunFolder, read_status
from attnlab.runs.listing import find_runs
from attnlab.training.stop import SIGNALS

GRACE = 5.0  # seconds that the others have to end by themselves once one is dead
LOOK = 0.02


def run_several(count: int, command: Sequence[str], run: Path | None) -> int:
    """Run `command` in `count` processes that make the run in `run`; returns the exit code of the whole."""
    with ExitStack() as kept:
        folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="attnlab-")))
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        members: list[_Member] = []
        kept.callback(_kill, members)  # whatever happens here, none is left behind
        with _passing_on(members) as received:
            for rank in range(count):
                members.append(_Member(Place(rank, count, rank, count, "127.0.0.1", store.port), command, folder))
            _stand_by(members)
        return _tell(members, received[0] if received else None, run)


class _Member:
    """One of the processes. The first speaks for all; what another has to say is read if it fails."""

    def __init__(self, place: Place, command: Sequence[str], folder: Path) -> None:
        self.place, self.log, self.killed = place, folder / str(place.rank), False
        more = {**place.environment(), AGENT_STORE: "True", LAUNCHER: "1"}
        quiet = {"TORCH_CPP_LOG_LEVEL": "ERROR"}  # it would say that looking for unused parameters takes time
        with ExitStack() as files:
            first = place.rank == 0
            self.process = subprocess.Popen(
                command,
                env={**quiet, **os.environ, **more},
                stdin=subprocess.PIPE,  # never written to: it ends with this process
                stdout=None if first else subprocess.DEVNULL,
                stderr=None if first else files.enter_context(self.log.open("wb")),
                start_new_session=True,  # a Ctrl-C at the terminal comes through here, once
            )

    @property
    def code(self) -> int | None:
        return self.process.poll()

    @property
    def failed(self) -> bool:
        """Ended, and neither well nor because it was asked to stop."""
        return self.code not in (None, 0, *(128 + number for number in SIGNALS))

    def kill(self) -> None:
        if self.code is None:
            self.killed = True
            self.process.kill()
            self.process.wait()

    def death(self) -> str:
        """How it ended."""
        code, name = self.process.returncode, f"process {self.place.rank} of {self.place.count} (counted from 0)"
        if code < 0:
            return f"{name} died: killed by signal {-code} ({signal.Signals(-code).name})"
        said = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return f"{name} ended with exit code {code}" + (f": {said[-1].removeprefix('error: ')}" if said else "")


def _kill(members: Sequence[_Member]) -> None:
    for member in members:
        member.kill()


@contextmanager
def _passing_on(members: Sequence[_Member]) -> Iterator[list[int]]:
    """Send on what this process is told to do; gives the signals received."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for member in members:
            if member.code is None:
                member.process.send_signal(number)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stand_by(members: Sequence[_Member]) -> None:
    """Until all have ended. Once one has failed the others have a moment to notice and are killed."""
    patience = GRACE
    while any(member.code is None for member in members):
        time.sleep(LOOK)
        if any(member.failed for member in members):
            patience -= LOOK
            if patience <= 0:
                _kill(members)


def _tell(members: Sequence[_Member], received: int | None, run: Path | None) -> int:
    codes = [member.process.returncode for member in members]
    if received is not None and any(codes) and {*codes} <= {0, 128 + received, -received, PeerLost.exit_code}:
        return 128 + received
    failed = [member for member in members if member.failed]
    if not failed:
        return max(codes)
    cause = min(failed, key=lambda member: (_blame(member), member.place.rank))
    if cause.place.rank == 0 and cause.process.returncode > 0:
        return cause.process.returncode  # it has said itself why, and written it down
    reason = f"{cause.death()}."
    if cause.log.exists() and "Traceback" in (said := cause.log.read_text(errors="replace")):
        sys.stderr.write(said)
    _write_down(members[0].process.pid, reason, run)
    console.fail(reason if run is None else f"{reason} The last checkpoint is whole: 'attnlab resume {run}'.")
    return 1


def _blame(member: _Member) -> int:
    """0 for a sudden death, 1 for a failure, 2 for the failure of losing another, 3 for what was done from here."""
    if member.killed:
        return 3
    code = member.process.returncode
    return 0 if code < 0 else 2 if code == PeerLost.exit_code else 1


def _write_down(writer: int, reason: str, run: Path | None) -> None:
    """In the status of the run, and of those inside it, that the dead process was writing."""
    for path in find_runs(run) if run is not None else ():
        status = read_status(path)
        if status["state"] != "finished" and status.get("pid") == writer:
            RunFolder(path, FileLock(path / "lock")).set_status("failed", reason)
