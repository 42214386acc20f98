"""Errors a user can cause end in one sentence and exit code 2, never in a traceback."""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


class UserError(Exception):
    """What is wrong, where, and what to do, in one sentence."""


def note(text: str) -> None:
    """A remark for the user; results go to stdout, remarks to stderr."""
    print(text, file=sys.stderr, flush=True)


def unknown(kind: str, name: str, choices: Iterable[str]) -> str:
    options = sorted(choices)
    close = difflib.get_close_matches(name, options, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(options)}."
    return f"unknown {kind} {name!r}: {hint}"


@contextmanager
def one_sentence() -> Iterator[None]:
    """Wrap everything a script does."""
    try:
        yield
    except UserError as error:
        note(f"error: {error}")
        sys.exit(2)
    except NotImplementedError as error:
        note(f"error: {_unfinished(error)} is not finished (NotImplementedError): write it.")
        sys.exit(2)
    except OSError as error:  # no permission, no space
        note(f"error: {error.filename or 'a file'} cannot be used: {error.strerror or error}.")
        sys.exit(2)
    except KeyboardInterrupt:
        note("stopped: the same command resumes at the last evaluation.")
        sys.exit(130)


def _unfinished(error: BaseException) -> str:
    """The innermost function of this folder that is a #todo still: file, line and name."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [(code, line) for code, line in frames if Path(code.co_filename).resolve().parent == FOLDER]
    if not ours or ours[-1][0] is not frames[-1][0]:  # raised by torch, not by a #todo
        raise error
    code, line = ours[-1]
    return f"{Path(code.co_filename).name}, line {line}: {code.co_qualname}"
