"""Seeds of what a test draws anew each time: printed, so that a failure can be repeated."""

from __future__ import annotations

import os
import time

VARIABLE = "ATTNLAB_TEST_SEED"


def drawn_seed() -> int:
    """The seed that ATTNLAB_TEST_SEED gives, else a new one; pytest shows the line when the test fails."""
    seed = int(os.environ.get(VARIABLE, time.time_ns() % 2**32))
    print(f"{VARIABLE}={seed} repeats this test")
    return seed
