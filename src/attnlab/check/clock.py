"""A time limit that a Python loop cannot outrun.

The alarm interrupts Python code where it stands, so the line is known. Code that swallows every exception,
or never returns from C, is ended from outside by the parent; so is everything on systems without alarms.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class TimeLimit(BaseException):
    """Not an Exception: the person's `except Exception` must not catch it."""


def _ring(signum: int, frame: FrameType | None) -> None:
    raise TimeLimit


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimit in the block if it takes longer than this."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limited(function: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """The same function, whose calls together may take so many seconds."""
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
