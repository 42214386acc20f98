"""What a person's process may use."""

from __future__ import annotations

import os
import resource
import sys
from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    seconds: float = 10.0
    """For one function: all its calls in one check together."""
    total_seconds: float = 300.0
    """For the whole file."""
    grace_seconds: float = 15.0
    """Beyond its seconds, before a process is killed that does not stop by itself: machines are busy."""
    memory: int = 2048 * MIB
    """Of each process, beyond what torch takes."""
    processes: int = 32
    """Processes and threads together."""
    file_bytes: int = 16 * MIB
    folder_bytes: int = 64 * MIB
    """Of the private folder, where it is a file system of its own."""
    open_files: int = 256


def apply(limits: Limits, mapped: int, others: int) -> None:
    """Limit this process: `mapped` bytes are there already, `others` are the tasks of its user that are not its own."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _limit(resource.RLIMIT_NOFILE, limits.open_files)
    _limit(resource.RLIMIT_NPROC, limits.processes + others)
    _limit(resource.RLIMIT_CPU, int(limits.total_seconds) + 1)
    if mapped:
        _limit(resource.RLIMIT_AS, mapped + limits.memory)


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def mapped_bytes() -> int:
    """The address space of this process, most of it torch; 0 where the system does not say."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def tasks_of(user: int) -> int:
    """The threads of all processes of this user: the kernel counts them all."""
    count = 0
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == user:
                    count += len(os.listdir(f"{entry.path}/task"))
            except OSError:
                continue  # it has ended
    return count
