"""Start a command several times on this machine and stand by: signals are passed on, and a death is told.

torchrun would do, but it gives a run 30 seconds to save when it is asked to stop, knows nothing of run folders, and a
Ctrl-C reaches its children twice. What matters is taken from torch: the meeting place is a store held here, at a port
the system chose, so that no two runs can meet. Of several machines each has a launcher, and the first one's holds it.
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

from attnlab.base import console
from attnlab.base.interrupts import SIGNALS
from attnlab.distributed.exits import Ending, cause, stopped_by
from attnlab.distributed.rank import QUIET, Place
from attnlab.distributed.team import AGENT_STORE, LAUNCHER
from attnlab.launch.rendezvous import Machines
from attnlab.runs import RunFolder, read_status
from attnlab.runs.listing import find_runs

GRACE = 5.0  # seconds that the others have to end by themselves once one is dead
LOOK = 0.05
KEPT = 20_000  # characters of what a process said last


def run_several(count: int, command: Sequence[str], run: Path | None, machines: Machines | None = None) -> int:
    """Run `command` in `count` processes, on each machine, that make the run in `run`.

    Returns the exit code of the whole; on other machines than the first 0, since the first tells it.
    """
    machines = machines or Machines()
    with ExitStack() as kept:
        folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="attnlab-")))
        members: list[_Member] = []
        kept.callback(_kill, members)  # whatever happens here, none is left behind
        with _passing_on(members) as received:
            for local in range(count):
                members.append(_Member(machines.place(local, count), command, folder))
            _stand_by(members, machines)
            endings = machines.gather([member.ending(machines.host) for member in members])
        if not machines.first:
            return 0
        return _tell(endings, received[0] if received else None, run, members[0].process.pid)


class _Member:
    """One of the processes. The first speaks for all; what another has to say is read if it fails."""

    def __init__(self, place: Place, command: Sequence[str], folder: Path) -> None:
        self.place, self.log, self.killed = place, folder / str(place.rank), False
        more = {**place.environment(), AGENT_STORE: "True", LAUNCHER: "1"}
        with ExitStack() as files:
            first = place.rank == 0
            self.process = subprocess.Popen(
                command,
                env={**QUIET, **os.environ, **more},
                stdin=subprocess.PIPE,  # never written to: it ends with this process
                stdout=None if first else subprocess.DEVNULL,
                stderr=None if first else files.enter_context(self.log.open("wb")),
                start_new_session=True,  # a Ctrl-C at the terminal comes through here, once
            )

    @property
    def code(self) -> int | None:
        return self.process.poll()

    def kill(self) -> None:
        if self.code is None:
            self.killed = True
            self.process.kill()
            self.process.wait()

    def ending(self, host: str = "") -> Ending:
        """How it ended; without a code while it goes on."""
        said = self.log.read_text(errors="replace")[-KEPT:] if self.code and self.log.exists() else ""
        return Ending(self.place.rank, self.place.count, self.code, self.killed, said, host)


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


def _stand_by(members: Sequence[_Member], machines: Machines) -> None:
    """Until all have ended. Once one has failed, on any machine, the others have a moment to notice and are killed.
    When the first machine's launcher is gone they are asked to stop, as those on that machine are."""
    patience, failed, asked = GRACE, False, False
    while True:
        going = any(member.code is None for member in members)
        if not failed and any(member.ending().failed for member in members):
            failed = True
            machines.tell_of_failure()
        if not going:
            return
        if failed or (not machines.alone and machines.failed()):
            patience -= LOOK
            if patience <= 0:
                _kill(members)
        if machines.alone and not asked:
            asked = True
            signal.raise_signal(signal.SIGTERM)  # passed on to all
        time.sleep(LOOK)


def _tell(endings: Sequence[Ending], received: int | None, run: Path | None, writer: int) -> int:
    """Say and write down what ended the run, unless its first process has; returns the exit code."""
    if received is not None and stopped_by(received, endings):
        return 128 + received
    to_blame = cause(endings)
    if to_blame is None:
        return max(ending.code or 0 for ending in endings)
    if to_blame.rank == 0 and to_blame.code is not None and to_blame.code > 0:
        return to_blame.code  # it has said itself why, and written it down
    reason = to_blame.sentence()
    if "Traceback" in to_blame.said:
        sys.stderr.write(to_blame.said)
    _write_down(writer, reason, run)
    console.fail(reason if run is None else f"{reason} The last checkpoint is whole: 'attnlab resume {run}'.")
    return 1


def _write_down(writer: int, reason: str, run: Path | None) -> None:
    """In the status of the run, and of those inside it, that the dead process was writing."""
    for path in find_runs(run) if run is not None else ():
        status = read_status(path)
        if status["state"] != "finished" and status.get("pid") == writer:
            RunFolder(path, FileLock(path / "lock")).set_status("failed", reason)
