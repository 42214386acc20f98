"""A time limit that also stops an endless Python loop.

The alarm interrupts Python code at the current line, so the line is known. Code that swallows every exception,
or never returns from C, is killed by the parent process; so is everything on systems without alarms.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class TimeLimitExceeded(BaseException):
    """Not an Exception: the person's `except Exception` must not catch it."""


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
