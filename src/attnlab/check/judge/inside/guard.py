"""The import guard: a file that is checked must not import the lab, under whatever name.

Where the lab's files cannot be seen at all, only the sentence comes from here. Elsewhere a hook of the interpreter also
refuses to open them, to start programs and to signal other processes. That stops Python code, not code in C.
"""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

SENTENCE = "attnlab is out of reach while a file is checked: a solution is written, not imported"
FORBIDDEN = frozenset(
    (
        "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn",
        "os.kill", "os.killpg", "ctypes.dlopen", "ctypes.dlsym", "socket.__new__", "signal.pthread_kill",
        "os.symlink", "os.link",
    )
)  # fmt: skip


class _Refuse(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] == "attnlab":
            raise ModuleNotFoundError(SENTENCE, name=name)
        return None


def install(hidden: list[str]) -> None:
    """Refuse attnlab; with folders that are hidden but still there, also whatever leads into them."""
    sys.meta_path.insert(0, _Refuse())
    if hidden:
        sys.addaudithook(_hook(hidden))


def _hook(hidden: list[str]) -> Callable[[str, tuple[object, ...]], None]:
    stat, files, forbidden = os.stat, _files_in(hidden), FORBIDDEN  # kept here: the person's code may replace os.stat

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path = arguments[0]
            if isinstance(path, str | bytes):
                try:
                    found = stat(path)
                except (OSError, ValueError):
                    return
                if (found.st_dev, found.st_ino) in files:
                    raise PermissionError(SENTENCE)
        elif event in forbidden:
            raise PermissionError(f"{event} is not allowed while a file is checked")

    return watch


def _files_in(folders: list[str]) -> frozenset[tuple[int, int]]:
    """Device and number of each file and folder, so that links and other names lead to the same."""
    paths = [
        os.path.join(folder, name)
        for top in folders
        for folder, inner, files in os.walk(top)
        for name in (*inner, *files, "")
    ]
    found = [os.stat(path) for path in paths if os.path.exists(path)]
    return frozenset((entry.st_dev, entry.st_ino) for entry in found)
