"""What every family of faults is made of.

A family is a module in tools/faults/families with a name and a function

    def tries(random: Random, folder: Path) -> Generator[Try]

which causes one fault after the other, in folders below `folder`, until nobody asks for another. Everything it decides
comes from `random`, so the seed that is printed repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Try:
    """One fault that was caused: a row of the table, what happened, and nothing if the lab survived it."""

    fault: str
    detail: str
    failure: str = ""


@dataclass(frozen=True)
class Family:
    name: str
    share: float  # of the time
    tries: Callable[[Random, Path], Generator[Try]]
    least: int = 0  # tries in a quarter of an hour, however long they take
