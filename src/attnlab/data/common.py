"""What sequences have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def common_start(sequences: Sequence[Any]) -> int:
    """How many items at the beginning are the same in all of these texts or lists."""
    first, last = min(sequences), max(sequences)  # all others lie between these two
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
