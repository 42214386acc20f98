"""Random draws that depend on what is drawn, not on when.

A draw is a hash of (seed, what, index), so entry 17 of "birthplace" is the same number whether
ten entries or ten million are drawn, in any order, on any machine and under any numpy version.
The hash is SplitMix64 (Steele, Lea and Flood, 2014).
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Draws:
    """A family of independent random sequences, one for each name."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def uniform(self, what: str, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Numbers in [0, 1), one for each entry of `index`."""
        key = hashlib.blake2b(f"{self.seed}/{what}".encode(), digest_size=8).digest()
        with np.errstate(over="ignore"):
            state = np.uint64(int.from_bytes(key, "little")) + (index.astype(np.uint64) + np.uint64(1)) * _GOLDEN
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
        return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, what: str, index: NDArray[np.int64], bound: int) -> NDArray[np.int64]:
        """Whole numbers in [0, bound), one for each entry of `index`."""
        return (self.uniform(what, index) * bound).astype(np.int64)

    def orders(self, what: str, index: NDArray[np.int64], items: int) -> NDArray[np.int64]:
        """A random order of range(items) for each entry of `index`: (len(index), items)."""
        cells = index[:, None] * items + np.arange(items)
        return np.argsort(self.uniform(what, cells), axis=1, kind="stable")

    def shuffled(self, what: str, items: list[str]) -> list[str]:
        """The items in a random order."""
        order = self.orders(what, np.zeros(1, dtype=np.int64), len(items))[0]
        return [items[i] for i in order]
