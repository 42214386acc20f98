"""status.json: queued, running, finished, failed or interrupted, and by which process.

Whether a run that says `running` still does is decided by its lock, which the operating system releases when its
process ends for any reason: no clock and no number of a process is compared. A lock on another machine is not always
visible here: such a run stays `running`, with the name of the machine that knows better.
"""

from __future__ import annotations

import json
import os
import platform
import stat
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from attnlab.runs.record import reason

STATUS, LOCK = "status.json", "lock"
STATES = ("queued", "running", "finished", "failed", "interrupted")
LOST = "its process was lost"


def own_status(state: str, why: str = "") -> dict[str, Any]:
    """The status of a run as this process writes it."""
    return {"state": state, "reason": why, "at": now(), "pid": os.getpid(), "host": platform.node(), "boot": _boot()}


def read_status(path: Path) -> dict[str, Any]:
    """The content of status.json; a run marked 'running' whose process has ended was interrupted."""
    status = _stored(path)
    if status["state"] != "running":
        return status
    alive = _alive(path, status)
    if alive is None:
        return status | {"reason": f"on {status.get('host') or 'another machine'}, as last reported"}
    latest = status if alive else _stored(path)  # it may have ended by itself since it was read
    return latest | {"state": "interrupted", "reason": LOST} if not alive and latest == status else latest


def _stored(path: Path) -> dict[str, Any]:
    """The content of status.json; 'interrupted', with the reason, if there is none that can be read."""
    try:
        status = json.loads((path / STATUS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _interrupted("it has no status.json")
    except (OSError, ValueError, RecursionError) as error:
        return _interrupted(f"its status.json cannot be read: {reason(error)}")
    if not isinstance(status, dict) or status.get("state") not in STATES:
        return _interrupted("its status.json is damaged")
    return {"reason": "", "at": ""} | {name: value for name, value in status.items() if _valid(name, value)}


def is_locked(path: Path) -> bool | None:
    """Whether a process holds the lock of a run; None where locks cannot be tested. Nothing is written or kept."""
    try:
        descriptor = os.open(path / LOCK, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        import fcntl

        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # released when the descriptor is closed
    except BlockingIOError:
        return True
    except (OSError, ImportError):
        return None
    finally:
        os.close(descriptor)
    return False


def now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _alive(path: Path, status: Mapping[str, Any]) -> bool | None:
    """Whether the process of a running run is still there; None if only its own machine can tell."""
    locked = is_locked(path)
    if locked:
        return True
    boot = status.get("boot")
    here = boot == _boot() if boot else False  # the same machine, whatever its name is now
    if not here and status.get("host") != platform.node():
        return None
    pid = status.get("pid", 0)
    return locked is None and 0 < pid < 2**31 and psutil.pid_exists(pid)


def _boot() -> str:
    """A number that a Linux machine draws anew at every start; empty elsewhere."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _valid(name: str, value: Any) -> bool:
    return isinstance(value, int if name == "pid" else str) if name in ("reason", "at", "pid", "host", "boot") else True


def _interrupted(why: str) -> dict[str, Any]:
    return {"state": "interrupted", "reason": why, "at": ""}
