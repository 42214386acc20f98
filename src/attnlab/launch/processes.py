"""Run a command in several processes on this machine: pass signals on, and report a process that dies.

torchrun is not used: it gives a run only 30 seconds to save after SIGTERM, knows nothing of run folders, and a Ctrl-C
reaches its children twice. As with torchrun, the processes meet at a store held by the launcher, at a port the system
chose, so that two runs never mix. With several machines each has a launcher, and the first one holds the store.
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
from attnlab.distributed.exits import ProcessExit, cause, stopped_by
from attnlab.distributed.team import AGENT_STORE, LAUNCHER, QUIET_TORCH, Rank
from attnlab.launch.rendezvous import LauncherGroup
from attnlab.runs import RunFolder, read_status
from attnlab.runs.listing import find_runs

GRACE = 5.0  # seconds that the others have to end by themselves once one has failed
POLL = 0.05  # seconds
KEPT = 20_000  # characters of the end of a process's output


def run_processes(count: int, command: Sequence[str], run: Path | None, launchers: LauncherGroup | None = None) -> int:
    """Run `command` in `count` processes on each machine; together they write to the run folder `run`.

    Returns the exit code of the whole run on the first machine, which reports it, and 0 on the others.
    """
    launchers = launchers or LauncherGroup()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="attnlab-")))
        members: list[_Member] = []
        stack.callback(_kill, members)  # no process is left behind, whatever happens here
        with _signals_passed_to(members) as received:
            for local in range(count):
                members.append(_Member(launchers.rank_of(local, count), command, folder))
            _wait(members, launchers)
            exits = launchers.gather([member.exit(launchers.host) for member in members])
        if not launchers.first:
            return 0
        return _report(exits, received[0] if received else None, run, members[0].process.pid)


class _Member:
    """One of the processes. The first prints; the output of another is read if it fails."""

    def __init__(self, rank: Rank, command: Sequence[str], folder: Path) -> None:
        self.rank, self.log, self.killed = rank, folder / str(rank.rank), False
        variables = {**rank.environment(), AGENT_STORE: "True", LAUNCHER: "1"}
        with ExitStack() as files:
            first = rank.rank == 0
            self.process = subprocess.Popen(
                command,
                env={**QUIET_TORCH, **os.environ, **variables},
                stdin=subprocess.PIPE,  # never written to: it ends with this process
                stdout=None if first else subprocess.DEVNULL,
                stderr=None if first else files.enter_context(self.log.open("wb")),
                start_new_session=True,  # a Ctrl-C at the terminal is passed on by this process, once
            )

    @property
    def code(self) -> int | None:
        return self.process.poll()

    def kill(self) -> None:
        if self.code is None:
            self.killed = True
            self.process.kill()
            self.process.wait()

    def exit(self, host: str = "") -> ProcessExit:
        """How it ended; without a code while it runs."""
        output = self.log.read_text(errors="replace")[-KEPT:] if self.code and self.log.exists() else ""
        return ProcessExit(self.rank.rank, self.rank.count, self.code, self.killed, output, host)


def _kill(members: Sequence[_Member]) -> None:
    for member in members:
        member.kill()


@contextmanager
def _signals_passed_to(members: Sequence[_Member]) -> Iterator[list[int]]:
    """Inside, signals to this process are sent to all members; yields the signals received."""
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


def _wait(members: Sequence[_Member], launchers: LauncherGroup) -> None:
    """Wait until all have ended.

    Once one has failed, on any machine, the others have GRACE seconds to end and are then killed. When the first
    machine's launcher is lost they are asked to stop, as those on that machine are.
    """
    grace, failed, stopping = GRACE, False, False
    while True:
        running = any(member.code is None for member in members)
        if not failed and any(member.exit().failed for member in members):
            failed = True
            launchers.report_failure()
        if not running:
            return
        if failed or (not launchers.first_is_lost and launchers.failed()):
            grace -= POLL
            if grace <= 0:
                _kill(members)
        if launchers.first_is_lost and not stopping:
            stopping = True
            signal.raise_signal(signal.SIGTERM)  # passed on to all
        time.sleep(POLL)


def _report(exits: Sequence[ProcessExit], received: int | None, run: Path | None, writer: int) -> int:
    """Print and record what ended the run, unless its first process has; returns the exit code."""
    if received is not None and stopped_by(received, exits):
        return 128 + received
    culprit = cause(exits)
    if culprit is None:
        return max(process.code or 0 for process in exits)
    if culprit.rank == 0 and culprit.code is not None and culprit.code > 0:
        return culprit.code  # it has printed and recorded the reason itself
    reason = culprit.sentence()
    if "Traceback" in culprit.output:
        sys.stderr.write(culprit.output)
    _record_failure(writer, reason, run)
    console.fail(reason if run is None else f"{reason} The last checkpoint is intact: 'attnlab resume {run}'.")
    return 1


def _record_failure(writer: int, reason: str, run: Path | None) -> None:
    """In the status of the unfinished runs, `run` and those inside it, that process `writer` was writing."""
    for path in find_runs(run) if run is not None else ():
        status = read_status(path)
        if status["state"] != "finished" and status.get("pid") == writer:
            RunFolder(path, FileLock(path / "lock")).set_status("failed", reason)
