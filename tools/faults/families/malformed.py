"""Malformed inputs: good files changed and values nobody means, for every command that reads a file or an option."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.faults.malformed import results
from tests.faults.outcomes import SURVIVED
from tools.faults.family import Family, Try


def tries(random: Random, folder: Path) -> Iterator[Try]:
    seed = random.randrange(2**32)
    for number, result in enumerate(results(seed, folder)):
        detail = f"seed {seed}, case {number}: attnlab {' '.join(result.case.words)}"
        failure = "" if result.outcome in SURVIVED else f"{result.outcome}: {result.message[-300:]}"
        yield Try(f"malformed {result.case.family}", detail, failure)


FAMILY = Family("malformed inputs", 3.0, tries, least=2000)
