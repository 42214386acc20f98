"""How a command ends: whatever a user can have caused is told in one sentence, with an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted


@contextmanager
def one_sentence() -> Iterator[None]:
    """Around all that a command or a script does."""
    try:
        yield
    except (UserError, RunFailed) as error:
        console.fail(str(error))
        sys.exit(error.exit_code)
    except Interrupted as interruption:
        sys.exit(interruption.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)  # a second Ctrl-C: at once, and the run folder says so
    except BrokenPipeError:
        sys.exit(141)  # who reads has seen enough
