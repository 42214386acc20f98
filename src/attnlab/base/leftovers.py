"""Temporary names beside a file or folder, and what a killed process leaves under them.

    .NAME.TOKEN.tmp       a file, or a folder that is being deleted
    .NAME.TOKEN.partial   a folder that is being filled
    .NAME.TOKEN.old       a folder whose successor was not in place yet: it is the valid one if NAME is missing

A token cannot be guessed, so nobody can put a file or a link under a name before it is used. Earlier versions used the
number of the process, or nothing for the checkpoints of a run.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"\.(?P<name>.+)\.(?:[0-9a-f]{16}|\d+)\.(?P<what>tmp|partial|old)")
_OLD_NAME = re.compile(r"\.(?P<name>(?:step|best)-\d{8})\.(?P<what>tmp|old)")


def temporary(path: Path, what: str = "tmp") -> Path:
    """An unused name beside `path`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.{what}")


def is_leftover(path: Path) -> bool:
    return _parsed(path) is not None


def replaced(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The folders under `folder` that a kill between two renames left as `.old`: where each is and where it belongs."""
    for path in folder.glob(".*.old") if folder.is_dir() else ():
        match = _parsed(path)
        if match is not None and not (final := folder / match["name"]).exists():
            yield path, final


def clean(folder: Path) -> None:
    """Put back what was replaced by nothing, delete the rest; only for the process that may write to the folder."""
    for path, final in list(replaced(folder)):
        os.rename(path, final)
    for path in folder.iterdir() if folder.is_dir() else ():
        if is_leftover(path):
            remove(path)


def remove(path: Path) -> None:
    """Delete a file, a link or a whole folder, as far as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Delete a folder so that nobody sees a part of it: it gets a temporary name first."""
    gone = temporary(path)
    os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _parsed(path: Path) -> re.Match[str] | None:
    return _NAME.fullmatch(path.name) or _OLD_NAME.fullmatch(path.name)
