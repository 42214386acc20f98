"""Metrics as lines of JSON: appended at once, readable while the run is active.

A killed process can leave half a line at the end; reading skips it, and a resumed run truncates the file to the
position in its checkpoint, so no step is in it twice.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class MetricsWriter:
    """Appends one line per measurement and flushes it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, **values: Any) -> None:
        self._file.write(json.dumps({name: _plain(value) for name, value in values.items()}) + "\n")
        self._file.flush()

    def position(self) -> int:
        """Bytes written so far, which a checkpoint records."""
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: null replaces them."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cut_back(path: Path, position: int) -> None:
    """Remove what was written after `position`: the resumed run writes it again."""
    if path.exists() and path.stat().st_size > position:
        os.truncate(path, position)


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The measurements of a run so far, oldest first."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                values = json.loads(line)
            except ValueError:
                continue  # half a line, from a process killed while writing
            if isinstance(values, dict):
                yield values


def last_metrics(path: Path, block: int = 8192) -> dict[str, Any]:
    """The last measurement of a run, read from the end of the file; empty without one."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return {}
    with file:
        start, tail = file.seek(0, os.SEEK_END), b""
        while start > 0:
            size = min(block, start)
            start -= size
            file.seek(start)
            tail = file.read(size) + tail
            lines = tail.split(b"\n")
            for line in reversed(lines if start == 0 else lines[1:]):  # the first may be cut by the block
                try:
                    values = json.loads(line)
                except ValueError:
                    continue  # half a line, from a process killed while writing, or an empty one
                if isinstance(values, dict):
                    return values
    return {}


def series(path: Path, split: str, name: str) -> tuple[list[int], list[float]]:
    """The steps and values of one metric of one split, for a curve."""
    points = [
        (line["step"], line[name])
        for line in read_metrics(path)
        if line.get("split") == split and line.get(name) is not None
    ]
    return [step for step, _ in points], [float(value) for _, value in points]
