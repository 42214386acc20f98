"""Files and folders written completely or not at all: under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.leftovers import temporary


def write_text(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step. Half of a surrogate pair, which UTF-8 does not have, becomes \\ud800."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step: a reader sees the old or the new content, never a part of it."""
    partial = temporary(path)
    try:
        write_new(partial, content)
        os.replace(partial, path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def write_new(path: Path, content: bytes) -> None:
    """A new file, flushed to disk; one that exists, or a link, is an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill, renamed to `path` at the end; an existing folder is removed only then."""
    path = path.absolute()
    partial, old = temporary(path, "partial"), temporary(path, "old")
    partial.mkdir(parents=True)
    try:
        yield partial
        for inner in [partial, *partial.rglob("*")]:
            if not inner.is_symlink():
                sync(inner)
        if path.exists():
            os.replace(path, old)
        os.replace(partial, path)
        sync(path.parent)
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


def check_new_file(path: Path) -> None:
    """Raise for a file that exists, or whose folder does not, before any work is done."""
    if path.exists():
        raise UserError(f"{path} exists: give the name of a new file.")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist; create it first or give another one.")


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot flush a folder
            raise
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """The checksum of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unlike(name: str, taken: Collection[str]) -> str:
    """The name, or the name with a number that no other has."""
    return next(text for n in range(1, 100_000) if (text := name if n == 1 else f"{name}-{n}") not in taken)


def folder_name(label: str, taken: Collection[str]) -> str:
    """A label as a folder name that no other has."""
    name = re.sub(r"[^\w.-]+", "-", label)[:100]
    return unlike("-" if name in ("", ".", "..") else name, taken)


def read_json(path: Path) -> dict[str, Any]:
    """A file with one JSON object."""
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno} is not JSON: {error.msg}.") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} is JSON nested too deeply, or has a number of thousands of digits.") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a JSON object.")
    return content


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """A JSON file of numbers; JSON has no NaN and no infinity, they become null."""
    write_text(path, json.dumps(finite(values), indent=1, ensure_ascii=False) + "\n")


def finite(value: Any) -> Any:
    """Plain values with null for every number that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def read_bytes(path: Path) -> bytes:
    """The content of a file that a user named; one that cannot be read is one sentence."""
    return b"".join(read_pieces(path, -1))


def read_pieces(path: Path, size: int) -> Iterator[bytes]:
    """The same in pieces of at most `size` bytes; -1: all at once."""
    try:
        with Path(path).open("rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty():
                raise UserError(f"{path} is a device: give a text file.")  # /dev/zero never ends
            while piece := file.read(size):
                yield piece
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: check the name.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give a text file.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UserError(f"{str(path)!r} is not the name of a file: it has a null character.") from None


def read_text(path: Path) -> str:
    """The whole text of a file, which must not be blank."""
    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8-sig")  # without a byte order mark
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line} is not UTF-8: save the file as UTF-8.") from None
    if not text.strip():
        raise UserError(f"{path} is empty: give a file with at least one line of text.")
    return text
