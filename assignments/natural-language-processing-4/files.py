"""Files written completely or not at all: under a temporary name, flushed to disk, then renamed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from errors import UserError


def write_whole(path: Path, parts: Iterable[bytes | bytearray | memoryview]) -> None:
    """Replace `path` in one step: a reader, or a power cut, finds the old content or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: object) -> None:
    write_whole(path, [json.dumps(content, indent=1, ensure_ascii=False).encode(), b"\n"])


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a JSON object: write it again, or remove it.")
    return content


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
