"""Questions and their answers."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    question: str
    answer: str
