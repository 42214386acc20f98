"""Ctrl-C and SIGTERM ask a run to stop; it saves after the step at hand and says how to go on.

A second Ctrl-C does not wait. A second SIGTERM changes nothing: a cluster sends several.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from attnlab.base import console

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """A run ends before its end, on purpose: its state is saved, and the message says why."""


class Interrupted(Stopped):
    """The run was asked to stop by a signal."""

    def __init__(self, received: signal.Signals) -> None:
        super().__init__(f"stopped by {received.name}")
        self.received = received
        self.exit_code = 128 + int(received)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.received,)  # one process tells the others


class StopRequest:
    """Remembers the first signal; the loop looks at it between steps."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.waits = True  # for the step at hand; an evaluation is given up at once

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal interrupts there and then: nothing is lost by it, and it may take long."""
        self.check()
        self.waits = False
        try:
            yield
        finally:
            self.waits = True

    def check(self) -> None:
        if self.received is not None:
            raise Interrupted(self.received)


_open: list[StopRequest] = []  # of this process, the innermost last


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Turn signals into a request while a run is on; only the main thread can.

    A run within another (a cell of a comparison) takes over what the outer one was asked while this one was made ready.
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
        console.say(f"{request.received.name}: saving the run (Ctrl-C to stop without) ...")
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
