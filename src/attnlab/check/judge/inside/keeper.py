"""The keeper of one person's process: it starts it, waits for it, and leaves nothing of it behind.

It holds one end of a socket, the judge the other. If that is closed, or the judge dies, everything is ended.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import socket
import time
import traceback

from . import system
from .confine import Confinement, Room, enter, shed
from .person import serve

POLL_SECONDS = 0.05
LAST_SECONDS = 0.5  # to end by itself, when the judge has closed the channel


def keep(confinement: Confinement, channel: int, control: socket.socket) -> None:
    """Run the person's process to its end; the judge is sent one line when it starts and one when it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _close_all_but(channel, control.fileno())
    try:
        room = enter(confinement)
    except OSError as error:
        _tell(control, failed=str(error))
        return
    with contextlib.suppress(OSError):
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
    person = os.fork()
    if not person:
        control.close()
        _be_the_person(confinement, room, channel)
    os.close(channel)
    _tell(control, started=True, own_root=room.own_root)
    status = _wait(person, control)
    _end_descendants(confinement, room)
    _tell(control, status=status)


def _be_the_person(confinement: Confinement, room: Room, channel: int) -> None:
    """Never returns."""
    code = 70
    try:
        os.setsid()
        shed(confinement, room)
        serve(channel, confinement.visible, [] if room.own_root else confinement.hidden)
        code = 0
    except BaseException:  # a fault of the lab: the judge sees that the process has ended
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(code)


def _wait(person: int, control: socket.socket) -> int | None:
    """The status with which it ended by itself, None if it had to be killed."""
    until = math.inf
    while time.monotonic() < until:
        pid, status = os.waitpid(person, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if until < math.inf:
            time.sleep(POLL_SECONDS / 10)
        elif select.select([control], [], [], POLL_SECONDS)[0]:
            until = time.monotonic() + LAST_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.kill(person, signal.SIGKILL)
    os.waitpid(person, 0)
    return None


def _end_descendants(confinement: Confinement, room: Room) -> None:
    """End what the person's process has started: in a process namespace it has ended with its first process."""
    if confinement.user and not room.own_processes:
        killer = os.fork()
        if not killer:
            os.setresuid(confinement.user, confinement.user, confinement.user)
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)  # every process of this user
            os._exit(0)
        os.waitpid(killer, 0)
    while children := _children():
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    """Orphans become children of this process, which is their subreaper."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _close_all_but(*kept: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    start = 3
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _tell(control: socket.socket, **facts: object) -> None:
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(facts).encode() + b"\n")
