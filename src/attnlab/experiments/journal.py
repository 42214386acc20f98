"""The lock of a sweep's journal: on one machine of the operating system, between machines a link with a name.

Locks of the operating system do not reach other machines on every network file system; creating a link does. A link
survives a killed worker, but who holds the operating system's lock knows that no other process of this machine is
alive behind a link with this machine's name. Behind a foreign name one may be, for as long as the link is new.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from filelock import FileLock
from optuna.storages.journal import JournalFileSymlinkLock

GRACE = 30.0  # seconds that another machine may hold the lock: it is held for one line
BLOCK = 65536
HERE = platform.node() or "localhost"


class JournalLock(JournalFileSymlinkLock):
    """Whoever gets the lock finds a journal that ends with a whole line."""

    def __init__(self, journal: Path, grace: float = GRACE) -> None:
        super().__init__(str(journal))
        self.journal, self.grace = journal, grace
        self._here = FileLock(journal.with_name(f"{journal.name}.mutex"))
        self._holder_link = journal.with_name(f"{journal.name}.lock")

    def acquire(self) -> bool:
        self._here.acquire()
        try:
            self._make_link()
            cut_torn_line(self.journal)
        except BaseException:
            self.release()
            raise
        return True

    def release(self) -> None:
        if self._holder() == HERE:
            self._holder_link.unlink(missing_ok=True)
        self._here.release()

    def _make_link(self) -> None:
        seen, since, pause = None, time.monotonic(), 0.001
        while True:
            try:
                return os.symlink(HERE, self._holder_link)
            except FileExistsError:
                pass
            holder = self._holder()
            if holder != seen:
                seen, since = holder, time.monotonic()
            if holder == HERE or time.monotonic() - since > self.grace:
                self._holder_link.unlink(missing_ok=True)
                continue
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _holder(self) -> str | None:
        """The machine that holds the lock; a file that is no link, or gone, has no name."""
        with suppress(OSError):
            return os.readlink(self._holder_link)
        return None


def cut_torn_line(path: Path) -> None:
    """Cut a file back to its last newline: what follows was written by a process that was killed."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        kept = end
        while kept > 0:
            start = max(0, kept - BLOCK)
            file.seek(start)
            newline = file.read(kept - start).rfind(b"\n")
            kept = start + newline + 1
            if newline >= 0:
                break
        if kept < end:
            file.truncate(kept)
