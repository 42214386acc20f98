"""The judge of malformed inputs denounces what is wrong and nothing else."""

from __future__ import annotations

import random
import signal

import pytest
from tests.faults.mutations import drawn, mutate, texts
from tests.faults.outcomes import LONGEST_MESSAGE, SURVIVED, outcome


@pytest.mark.parametrize(
    ("code", "late", "printed", "message", "expected"),
    [
        (0, False, "all is well", "", "accepted"),
        (2, False, "", "error: a.csv, line 3 is empty.", "refused"),
        (1, False, "1 check fails", "", "failed the check"),
        (2, False, "", "", "no sentence"),
        (1, False, "", "Traceback (most recent call last):\nKeyError: 'x'", "traceback"),
        (1, False, "", "Traceback (most recent call last):\nMemoryError", "memory"),
        (-signal.SIGSEGV, False, "", "", "exit code -11"),
        (-signal.SIGXCPU, False, "", "", "hang"),
        (0, True, "", "", "hang"),
        (0, False, "\x1b[2J", "", "control characters"),
        (2, False, "", "error: " + "x" * LONGEST_MESSAGE, "long message"),
    ],
)
def test_an_ending_is_judged(code: int, late: bool, printed: str, message: str, expected: str) -> None:
    assert outcome(code, late, printed, message) == expected
    assert (expected in SURVIVED) == (expected in ("accepted", "refused", "failed the check"))


def test_a_seed_gives_the_same_inputs() -> None:
    assert drawn(texts(), 20, 3) == drawn(texts(), 20, 3) != drawn(texts(), 20, 4)
    content = b'{"a": [1, 2], "b": "c"}'
    changed = [[mutate(content, random.Random(n)) for n in range(50)] for _ in range(2)]
    assert changed[0] == changed[1] and sum(each != content for each in changed[0]) > 40
