"""Ctrl-C and SIGTERM request a run to stop; it saves after the current step and prints how to resume.

A second Ctrl-C stops at once. A second SIGTERM changes nothing: a cluster sends several.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """A run stops early on purpose: its state is saved, and the message gives the reason."""


class Interrupted(Stopped):
    """A signal requested the run to stop."""

    def __init__(self, received: signal.Signals) -> None:
        super().__init__(f"stopped by {received.name}")
        self.received = received
        self.exit_code = 128 + int(received)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.received,)  # it is sent to the other processes


class StopRequest:
    """The first signal received; the loop checks it between steps."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.waits = True  # for the current step; an evaluation is stopped at once

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal interrupts at once: nothing is lost, and waiting could take long."""
        self.check()
        self.waits = False
        try:
            yield
        finally:
            self.waits = True

    def check(self) -> None:
        if self.received is not None:
            raise Interrupted(self.received)


_open: list[StopRequest] = []  # in this process, the innermost last


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Turn signals into a request while a run is active; only the main thread can.

    A run inside another (a cell of a comparison) inherits a request the outer one received while it was prepared.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if request.received is not None:
            if number == signal.SIGTERM:
                return
            raise KeyboardInterrupt
        request.received = signal.Signals(number)
        console.say(f"{request.received.name}: saving the run (Ctrl-C again to stop without saving) ...")
        if not request.waits:
            request.check()

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    if _open:
        request.received = _open[-1].received
    _open.append(request)
    try:
        yield request
    finally:
        _open.pop()
        for number, handler in before.items():
            signal.signal(number, handler)


def pause(seconds: float) -> None:
    """Sleep, unless a signal requests the run to stop."""
    with _open[-1].at_once() if _open else nullcontext():
        time.sleep(seconds)


@contextmanager
def one_sentence() -> Iterator[None]:
    """Wrap everything a command or a script does. Warnings of libraries are for --verbose alone."""
    warnings.simplefilter("ignore")
    try:
        yield
    except (UserError, RunFailed) as error:
        console.fail(str(error))
        sys.exit(error.exit_code)
    except Interrupted as interruption:
        sys.exit(interruption.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)  # a second Ctrl-C: stop at once; the run folder records it
    except BrokenPipeError:
        sys.exit(141)  # the reader closed the pipe
    except Exception as error:
        from attnlab.base.machine.facts import is_out_of_memory  # loads torch

        if not is_out_of_memory(error):
            raise
        console.fail("there is not enough memory for this: give smaller sizes or a smaller file.")
        sys.exit(UserError.exit_code)
