"""A time limit that also stops an endless Python loop.

The alarm interrupts Python code at the current line, so the line is known. Code that swallows every exception,
or never returns from C, is killed by the parent process; so is everything on systems without alarms.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class TimeLimitExceeded(BaseException):
    """Not an Exception: the student's `except Exception` must not catch it."""


def _raise_limit(signum: int, frame: FrameType | None) -> None:
    raise TimeLimitExceeded


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitExceeded in the block when it takes longer than `seconds`."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _raise_limit)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def limited(function: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """The same function; all its calls together may take `seconds`."""
    left = seconds

    def call(*args: Any) -> Any:
        nonlocal left
        started = time.monotonic()
        try:
            with time_limit(left):
                return function(*args)
        finally:
            left -= time.monotonic() - started

    return call
