"""Errors a user can cause or meet, each printed as one sentence instead of a traceback.

`UserError`  an input is wrong: exit code 2, nothing has been written.
`RunFailed`  a run that started had to stop: exit code 1, the reason is in its folder.
Any other exception is a fault of the lab and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """An input of the user is wrong. The message is one sentence: what is wrong, where, and what to do."""

    exit_code = 2


class DoesNotFit(UserError):
    """What was asked for needs more memory than there is."""


class RunFailed(Exception):
    """A run had to stop. The message names the cause and what was saved."""

    exit_code = 1


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice closest in spelling to `name`, or None when nothing is close."""
    matches = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return matches[0] if matches else None


def unknown(kind: str, name: str, choices: Iterable[str]) -> str:
    """One sentence for a name that is not among `choices`, with the nearest one that is."""
    options = sorted(choices)
    close = nearest(name, options)
    hint = f"did you mean {close!r}?" if close else f"choose from {', '.join(options)}."
    return f"unknown {kind} {name!r}: {hint}"


def first_line(error: BaseException) -> str:
    """The first line of a library's error, short enough for a sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" .:")[:160] if lines else type(error).__name__


def shown(value: object, longest: int = 200) -> str:
    """A value in a sentence, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
