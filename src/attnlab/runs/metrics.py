"""Metrics as lines of JSON: appended at once, readable while the run is active.

A killed process can leave half a line at the end; reading skips it, as it skips whatever is no measurement, and a
resumed run truncates the file to the position in its checkpoint, so no step is in it twice.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError

NUMBERS = ("epoch", "tokens", "seconds")  # of every line, besides its step


class MetricsWriter:
    """Appends one line per measurement and flushes it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, **values: Any) -> None:
        self._file.write(json.dumps({name: _plain(value) for name, value in values.items()}) + "\n")
        self._file.flush()

    def position(self) -> int:
        """Bytes on the disk so far, which a checkpoint records."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: null replaces them."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cut_back(path: Path, position: int) -> None:
    """Remove what was written after `position`: the resumed run writes it again. A line begins there."""
    if not path.exists():
        return
    if path.stat().st_size > position:
        os.truncate(path, position)
    with path.open("r+b") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        if file.read(1) not in (b"", b"\n"):
            file.write(b"\n")


def lost_metrics(path: Path, position: int) -> str:
    """What is wrong with the lines before a checkpoint's `position`, in one sentence; empty if nothing is."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, position - 1))
            if size >= position and (position == 0 or file.read(1) == b"\n"):
                return ""
    except FileNotFoundError:
        size = 0
    if position == 0:
        return ""
    what = f"has {size:,} of the {position:,} bytes" if size < position else "has other lines than"
    return f"{path.name} {what} that were there when the checkpoint was saved: the curves of this run have a gap."


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The measurements of a run so far, oldest first."""
    try:
        file = path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        for line in file:
            if (values := _measurement(line)) is not None:
                yield values


def last_metrics(path: Path, block: int = 8192) -> dict[str, Any]:
    """The last measurement of a run, read from the end of the file; empty without one."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        start, tail = file.seek(0, os.SEEK_END), b""
        while start > 0:
            size = min(block, start)
            start -= size
            file.seek(start)
            tail = file.read(size) + tail
            lines = tail.split(b"\n")
            for line in reversed(lines if start == 0 else lines[1:]):  # the first may be cut by the block
                if (values := _measurement(line)) is not None:
                    return values
    return {}


def _measurement(line: str | bytes) -> dict[str, Any] | None:
    """A line as a measurement; None for half a line, for an empty one and for what another program wrote."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    shaped = isinstance(values, dict) and isinstance(values.get("step"), int)
    return values if shaped and all(isinstance(values.get(name, 0.0), int | float) for name in NUMBERS) else None


def series(path: Path, split: str, name: str) -> tuple[list[int], list[float]]:
    """The steps and values of one metric of one split, for a curve."""
    points = [
        (line["step"], line[name])
        for line in read_metrics(path)
        if line.get("split") == split and isinstance(line.get(name), int | float)
    ]
    return [step for step, _ in points], [float(value) for _, value in points]


def trained_seconds(run: Path, record: Mapping[str, Any]) -> float:
    """Time in training steps: from the record of a finished run, else from its last measurement."""
    training = record.get("training", {})
    return float(
        training["seconds"] if "seconds" in training else last_metrics(run / "metrics.jsonl").get("seconds", 0.0)
    )
