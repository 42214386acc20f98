"""Counts the file operations of this process below a folder, and ends it before one of them.

Python announces every operation before it happens (`sys.addaudithook`), so the code of the lab needs no hooks. An
operation is a file opened for writing, a rename, a deletion, a folder made or removed, a file cut, or a flush.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"}
WRITING = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Kill:
    """Before which operation the process ends; with `power_cut`, what was not flushed is lost in part."""

    at: int
    power_cut: bool = False
    seed: int = 0


class Operations:
    def __init__(self, folder: Path, kill: Kill | None, count_file: Path) -> None:
        self.folder, self.kill, self.count_file = os.path.abspath(folder), kill, count_file
        self.count, self.active = 0, True
        self.flushed = dict(self._sizes())  # bytes by inode that a power cut leaves
        self.flush = os.fsync

    def watch(self) -> None:
        """From here on; the number is in the count file at the end."""
        os.fsync = self._fsync
        sys.addaudithook(self._hear)

    def end(self) -> None:
        self.active = False
        self.count_file.write_text(str(self.count))

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING and self._is_inside(path):
                self._next()
        elif event in EVENTS and any(map(self._is_inside, arguments)):
            self._next()

    def _is_inside(self, path: object) -> bool:
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        return isinstance(path, str | os.PathLike) and os.path.abspath(path).startswith(self.folder)

    def _fsync(self, descriptor: int) -> None:
        self._next()
        self.flush(descriptor)
        status = os.fstat(descriptor)
        self.flushed[status.st_ino] = status.st_size

    def _next(self) -> None:
        self.count += 1
        if self.kill is not None and self.count == self.kill.at:
            self.active = False
            if self.kill.power_cut:
                self._lose()
            os.kill(os.getpid(), signal.SIGKILL)

    def _lose(self) -> None:
        """Cut every file somewhere after what was flushed of it."""
        random = Random(self.kill.seed if self.kill else 0)
        for path in sorted(Path(self.folder).rglob("*")):
            if path.is_file():
                status = path.stat()
                kept = self.flushed.get(status.st_ino, 0)
                if status.st_size > kept:
                    os.truncate(path, random.randint(kept, status.st_size))

    def _sizes(self) -> list[tuple[int, int]]:
        files = [path.stat() for path in Path(self.folder).rglob("*") if path.is_file()]
        return [(status.st_ino, status.st_size) for status in files]
