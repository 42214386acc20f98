"""How a command ends: an error that a user can cause is printed as one sentence, with an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from attnlab.base import console
from attnlab.base.errors import RunFailed, UserError
from attnlab.base.interrupts import Interrupted


@contextmanager
def one_sentence() -> Iterator[None]:
    """Wrap everything a command or a script does."""
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
