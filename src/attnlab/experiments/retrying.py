"""A database that is away for a while, restarted for instance: what was asked of it is asked again.

Each operation of Optuna's storage is one transaction. One whose answer was lost may have been carried out: that a trial
has ended already is then no error, and one that was begun for nobody is requeued as that of a lost worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, PendingRollbackError

from attnlab.base import console
from attnlab.base.interrupts import pause

LONGEST_WAIT = 300.0  # seconds that the database may be away
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 20.0  # seconds between two tries, growing


def retrying(
    storage: BaseStorage, seconds: float | None = None, reset: Callable[[], object] = lambda: None
) -> BaseStorage:
    """The same storage, whose operations wait for the database to come back; `reset` forgets a broken connection."""
    operations = {name: _repeated(getattr(storage, name), seconds, reset) for name in BaseStorage.__abstractmethods__}
    kind: type[BaseStorage] = type("RetryingStorage", (BaseStorage,), operations)
    return kind()


def _repeated(operation: Callable[..., Any], seconds: float | None, reset: Callable[[], object]) -> Callable[..., Any]:
    @wraps(operation)
    def repeated(storage: BaseStorage, *arguments: Any, **named: Any) -> Any:
        limit = LONGEST_WAIT if seconds is None else seconds
        start, wait, lost = time.monotonic(), FIRST_PAUSE, False
        while True:
            try:
                answer = operation(*arguments, **named)
            except UpdateFinishedTrialError:
                if not lost:
                    raise
                return True  # the lost answer was that it has ended
            except Exception as error:
                left = limit - (time.monotonic() - start)
                if not is_away(error) or left <= 0:
                    raise
                if not lost:
                    console.warn(f"the store does not answer: it is tried again for up to {console.clock(limit)}.")
                lost = True
                with suppress(Exception):  # a session whose transaction was cut off refuses all that follows
                    reset()
                pause(min(wait, left))
                wait = min(2 * wait, LONGEST_PAUSE)
            else:
                if lost:
                    console.say("the store answers again.")
                return answer

    return repeated


def is_away(error: BaseException) -> bool:
    """Whether the database could not be reached, or ended the connection."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    return isinstance(cause, OperationalError | InterfaceError | PendingRollbackError) or (
        isinstance(cause, DBAPIError) and cause.connection_invalidated
    )
