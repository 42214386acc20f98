"""Files and folders written completely or not at all: under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnlab.base.errors import UserError


def write_text(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step: a reader sees the old or the new content, never a part of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill, renamed to `path` at the end; an existing folder is removed only then."""
    path = path.absolute()
    partial, old = (path.with_name(f".{path.name}.{os.getpid()}.{what}") for what in ("partial", "old"))
    partial.mkdir(parents=True)
    try:
        yield partial
        if path.exists():
            os.replace(path, old)
        os.replace(partial, path)
    finally:
        if old.exists() and not path.exists():
            os.replace(old, path)
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(partial, ignore_errors=True)


def check_new_folder(folder: Path) -> None:
    """Raise for a folder that contains files already, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: give a folder that is new or empty.")
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty: give a folder that is new or empty.")


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """The checksum of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
