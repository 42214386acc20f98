"""Which worker runs which trial: one lock of the operating system per trial, which a killed process releases.

All workers share the sweep's folder, so the locks are there, whatever stores the trials. Claiming a trial, and finding
out that its worker was lost, happen one worker at a time: under `turn`, a trial that is running and whose lock is free
was abandoned. Where a worker is on another machine and the file system may not carry locks that far, it must have been
silent for a while as well: a worker touches its lock file while it runs.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from filelock import FileLock, Timeout

BEAT = 15.0  # seconds between two signs of life
SILENCE = 120.0  # after so many without one, a worker on another machine is lost


class Claims:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.turn = FileLock(folder / "turn.lock")

    def take(self, number: int) -> Held:
        return Held(self._path(number))

    def abandoned(self, number: int, host: str | None) -> bool:
        """Whether no worker holds a trial that is recorded as running; to be called under `turn`."""
        path = self._path(number)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        lock.release()
        return host in (None, platform.node()) or self._silent(path) > SILENCE

    def _silent(self, path: Path) -> float:
        """Seconds since the last sign of life, by the clock of the file system."""
        now = self.folder / f"clock-{platform.node()}-{os.getpid()}"
        now.touch()
        try:
            return now.stat().st_mtime - path.stat().st_mtime
        finally:
            now.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:05d}.lock"


class Held:
    """A trial this process runs, until `release`."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path)
        self._lock.acquire(timeout=0)
        self._done = Event()
        self._beat = Thread(target=self._heartbeat, args=(path,), daemon=True)
        self._beat.start()

    def _heartbeat(self, path: Path) -> None:
        while True:
            with suppress(OSError):  # the network may be away for a moment
                os.utime(path)
            if self._done.wait(BEAT):
                return

    def release(self) -> None:
        self._done.set()
        self._beat.join()
        self._lock.release()
