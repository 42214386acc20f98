"""Files and folders written completely or not at all: under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def unlike(name: str, taken: Collection[str]) -> str:
    """The name, or the name with a number that no other has."""
    return next(text for n in range(1, 100_000) if (text := name if n == 1 else f"{name}-{n}") not in taken)


def folder_name(label: str, taken: Collection[str]) -> str:
    """A label as a folder name that no other has."""
    return unlike(re.sub(r"[^\w.-]+", "-", label)[:100], taken)


def read_json(path: Path) -> dict[str, Any]:
    """A file with one JSON object."""
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno} is not JSON: {error.msg}.") from None
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


def read_text(path: Path) -> str:
    """The whole text of a file, which must not be blank."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: check the name.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give a text file.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        text = raw.decode("utf-8-sig")  # without a byte order mark
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line} is not UTF-8: save the file as UTF-8.") from None
    if not text.strip():
        raise UserError(f"{path} is empty: give a file with at least one line of text.")
    return text
