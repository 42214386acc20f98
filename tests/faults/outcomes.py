"""What a command did with a malformed input."""

from __future__ import annotations

import re
import signal

LONGEST_MESSAGE = 4000
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SURVIVED = ("accepted", "refused", "failed the check")
EXITS = {0: "accepted", 1: "failed the check", 2: "refused"}


def outcome(code: int, late: bool, printed: str, message: str) -> str:
    if late or code == -signal.SIGXCPU:
        return "hang"
    if "MemoryError" in message:
        return "memory"
    if "Traceback (most recent call last)" in message:
        return "traceback"
    if code not in EXITS:
        return f"exit code {code}"
    if code == 2 and not ("error: " in message or "Usage: " in message):
        return "no sentence"
    if len(message) > LONGEST_MESSAGE:
        return "long message"
    if OBEYED.search(printed + message):
        return "control characters"
    return EXITS[code]
