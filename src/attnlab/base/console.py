"""The lab's output: results to standard output, remarks to standard error.

Colours and bars appear on a terminal only (rich decides; NO_COLOR is honoured).
`--quiet` keeps results and errors, `--verbose` adds details.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from rich.console import Console

OBEYED = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters except tab and newline, changes of the writing direction, halves of characters."""


class Verbosity(enum.IntEnum):
    SILENT = -1  # for all but the first of several processes: errors only
    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


out = Console(highlight=False, soft_wrap=True)
err = Console(highlight=False, soft_wrap=True, stderr=True)
_verbosity = Verbosity.NORMAL


def set_verbosity(level: Verbosity) -> None:
    global _verbosity
    _verbosity = level


def verbosity() -> Verbosity:
    return _verbosity


@contextmanager
def at_verbosity(level: Verbosity) -> Iterator[None]:
    """Inside, the lab prints what this level allows."""
    before = verbosity()
    set_verbosity(level)
    try:
        yield
    finally:
        set_verbosity(before)


def result(text: object = "") -> None:
    """The result of the command: printed even with --quiet."""
    if _verbosity > Verbosity.SILENT:
        out.print(text)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a spinner while something takes seconds and has no steps to count; on a terminal only."""
    if err.is_terminal and _verbosity > Verbosity.QUIET:
        with err.status(text):
            yield
    else:
        yield


def say(text: str) -> None:
    """A remark on progress."""
    if _verbosity >= Verbosity.NORMAL:
        err.print(text, markup=False)


def detail(text: str) -> None:
    """A remark for --verbose."""
    if _verbosity >= Verbosity.VERBOSE:
        err.print(text, markup=False, style="dim")


def warn(text: str) -> None:
    """Something the user should know, such as a setting the lab changed."""
    if _verbosity > Verbosity.SILENT:
        err.print(f"note: {text}", markup=False, style="yellow")


def fail(text: str) -> None:
    """The one sentence before a non-zero exit."""
    err.print(f"error: {text}", markup=False, style="bold red")


def visible(text: str) -> str:
    """Text of a file or a model without what a terminal would obey: such characters are shown as \\x1b or \\u202e."""
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def json_line(values: Mapping[str, Any]) -> str:
    """One line of JSON that a terminal can show: JSON itself escapes only a part of such characters."""
    line = json.dumps(values, ensure_ascii=False)
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", line) + "\n"


def clock(seconds: float) -> str:
    """A duration as 1:02:03, or 2:03."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def started_at(iso: str) -> str:
    """The start time of a run, for a table."""
    return datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M")
