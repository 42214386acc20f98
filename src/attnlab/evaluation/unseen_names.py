"""Names that occur nowhere: whatever a model answers for them, it cannot have learned it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

TRIES = 50  # for each name wanted, before there seem to be no more


def recombine(names: Sequence[str], count: int, known: Callable[[str], bool], seed: int) -> list[str]:
    """At most `count` full names, each a first name of one and the last name of another, that nobody has.

    Both halves are familiar and only their meeting is new, so a model cannot tell by odd letters. Fewer come back
    when the names given do not combine to more.
    """
    parts = [name.rsplit(" ", 1) for name in dict.fromkeys(names) if " " in name]
    firsts, lasts = (sorted({part[side] for part in parts}) for side in (0, 1))
    if not parts:
        return []
    random = np.random.default_rng(seed)
    found: dict[str, None] = {}
    for _ in range(TRIES * count):
        if len(found) == count:
            break
        name = f"{firsts[random.integers(len(firsts))]} {lasts[random.integers(len(lasts))]}"
        if name not in found and not known(name):
            found[name] = None
    return list(found)
