"""What the notebooks share: settings from environment variables, and results as JSON files.

A setting that cannot be read, and any other mistake of the user, ends a script with one sentence and exit code 2.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from attnlab.base.errors import UserError, unknown
from attnlab.base.files import write_text
from attnlab.base.machine.facts import cores, cpu_name, devices, versions

QUICK = os.environ.get("ATTNLAB_QUICK") == "1"
OUT = Path(os.environ.get("ATTNLAB_OUT", "runs/attention-assignment"))
RESULTS, FIGURES = OUT / "results", OUT / "figures"
FIGURES.mkdir(parents=True, exist_ok=True)

Value = TypeVar("Value")
_given: dict[str, str] = {}
"""The environment variables that were set, in the order in which they were read."""


def setting(name: str, default: Value, read: Callable[[str], Value], quick: Value | None = None) -> Value:
    """The environment variable of this name, read as a value; the default if it is not set.

    A size has a `quick` value too, which holds, whatever is set, when everything is to be tiny.
    """
    text = _read(name)
    if QUICK and quick is not None:
        return quick
    if not text:
        return default
    try:
        return read(text)
    except ValueError:
        example = ",".join(map(str, default)) if isinstance(default, list) else default
        raise UserError(f"{name}={text}: expected a value such as {example}.") from None


def _read(name: str) -> str:
    text = os.environ.get(name, "").strip()
    if text:
        _given[name] = text
    return text


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or not int(text):
        raise ValueError
    return int(text)


def positive(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < inf:
        raise ValueError
    return value


def numbers(text: str) -> list[int]:
    """Whole numbers from 0 separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ValueError
    return [int(part) for part in parts]


def choices(name: str, known: Mapping[str, object] | tuple[str, ...], default: str) -> list[str]:
    """The names, separated by commas, in the environment variable; each must be known."""
    chosen = [word.strip() for word in _read(name).split(",") if word.strip()] or default.split(",")
    for word in chosen:
        if word not in known:
            raise UserError(f"{name}: {unknown('name', word, known)}")
    return chosen


def save(name: str, values: Mapping[str, Any]) -> Path:
    """Write results/NAME.json: the values, and the command, machine and versions that they came from."""
    machine = {"cpu": cpu_name(), "cores": cores(), "devices": devices()}
    command = " ".join([*(f"{name}={text}" for name, text in _given.items()), "python", Path(sys.argv[0]).name])
    record = {**values, "command": command, "quick": QUICK, "machine": machine, "versions": versions()}
    text = json.dumps(record, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text)  # a list on one line
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    write_text(path, text + "\n")
    print(f"results: {path}")
    return path


def _one_sentence(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A user's mistake as one sentence; any other exception keeps its traceback."""
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    sys.__excepthook__(kind, error, trace)


sys.excepthook = _one_sentence
