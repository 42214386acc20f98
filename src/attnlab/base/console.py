"""The lab's output: results to standard output, remarks to standard error.

Colours and bars appear on a terminal only (rich decides; NO_COLOR is honoured).
`--quiet` keeps results and errors, `--verbose` adds details.
A text is printed as it is: brackets and colons in it are no markup, and what a terminal would obey is shown as \\x1b.
What has a colour is a rich Text.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from attnlab.base.files import finite
from attnlab.base.secrets import without_passwords

OBEYED = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters except tab and newline, changes of the writing direction, halves of characters."""


LONGEST = 3000  # characters of a message


class Verbosity(enum.IntEnum):
    SILENT = -1  # for all but the first of several processes: errors only
    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


class PlainConsole(Console):
    """Shows every character of a text that a terminal would obey, also those in the cells of a table."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            is_control = segment.control is not None
            yield segment if is_control else Segment(visible(segment.text), segment.style)


out = PlainConsole(highlight=False, soft_wrap=True, markup=False, emoji=False)
err = PlainConsole(highlight=False, soft_wrap=True, markup=False, emoji=False, stderr=True)
_spinner: Status | None = None
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
        out.print(visible(text) if isinstance(text, str) else text)


def json_result(values: object, indent: int | None = 2) -> None:
    """A result as JSON. A number that JSON does not have is null; other values than JSON's are written as text."""
    text = json.dumps(finite(values), indent=indent, ensure_ascii=False, default=str)
    out.out(_escaped(text), highlight=False)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a spinner while something takes seconds and has no steps to count; on a terminal only."""
    global _spinner
    if err.is_terminal and _verbosity > Verbosity.QUIET:
        before = _spinner
        try:
            with err.status(Text(text)) as _spinner:
                yield
        finally:
            _spinner = before
    else:
        yield


def doing(text: str) -> None:
    """What is being done at the moment, beside the spinner if there is one."""
    if _spinner is not None:
        _spinner.update(Text(text))


def say(text: str) -> None:
    """A remark on progress."""
    if _verbosity >= Verbosity.NORMAL:
        err.print(visible(text))


def detail(text: str) -> None:
    """A remark for --verbose."""
    if _verbosity >= Verbosity.VERBOSE:
        err.print(visible(text), style="dim")


def warn(text: str) -> None:
    """Something the user should know, such as a setting the lab changed."""
    if _verbosity > Verbosity.SILENT:
        err.print(visible(f"note: {without_passwords(text)}"), style="yellow")


def fail(text: str) -> None:
    """The one sentence before a non-zero exit."""
    err.print(visible(f"error: {shortened(without_passwords(text))}"), style="bold red")


def cell(text: object) -> Text:
    """For a table, whose columns are as wide as what is shown."""
    return Text(visible(str(text)))


def shortened(text: str) -> str:
    """A message without its middle where a value in it is so long that nobody would read it."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def visible(text: str) -> str:
    """Text of a file or a model without what a terminal would obey: such characters are shown as \\x1b or \\u202e."""
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def json_line(values: Mapping[str, Any]) -> str:
    """One line of JSON that a terminal can show: JSON itself escapes only a part of such characters."""
    return _escaped(json.dumps(values, ensure_ascii=False)) + "\n"


def _escaped(text: str) -> str:
    return OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def clock(seconds: float) -> str:
    """A duration as 1:02:03, or 2:03."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def started_at(iso: str) -> str:
    """The start time of a run, for a table."""
    return datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M")
