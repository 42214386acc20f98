"""Texts that are nearly the same: MinHash signatures of their character sequences, compared only where they meet.

The similarity is the Jaccard index of the sets of five consecutive characters, without case, punctuation and doubled
blanks. Two sets have the same minimum under a random order with a probability equal to their Jaccard index (Broder
1997); with 16 groups of 4 such minima, a pair of similarity 0.8 shares a group with probability 0.9998. The minima of a
long text are those of its 256 smallest codes, which alike texts have in common: time grows with the number of
characters, not with the square of the number of texts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ALIKE = 0.8
WIDTH = 5
BANDS, ROWS = 16, 4
COMPARED = 8
"""Texts of a bucket that each further one is compared with: a bucket of boilerplate must not cost its square."""
SKETCH = 256
"""Codes of a text that its signature is made from."""
_NOT_WORD = re.compile(r"[\W_]+")


class NearPair(NamedTuple):
    first: int
    second: int
    similarity: float


Codes = NDArray[np.uint64]
"""Numbers of the character sequences of a text, ascending, each once."""


def near_duplicates(texts: Sequence[str], least: float = ALIKE) -> list[NearPair]:
    """Pairs of places whose texts are alike but not equal, each text with the first one it resembles."""
    codes = lru_cache(maxsize=1024)(lambda place: character_codes(texts[place]))  # of all texts they fill the memory
    pairs: dict[int, NearPair] = {}
    for first, second in _candidates(texts):
        known = pairs.get(second)
        if known is not None and known.first <= first:
            continue
        similarity = jaccard(codes(first), codes(second))
        if similarity >= least and texts[first] != texts[second]:
            pairs[second] = NearPair(first, second, similarity)
    return sorted(pairs.values())


def jaccard(one: Codes, two: Codes) -> float:
    """|A ∩ B| / |A ∪ B|; two empty sets are not alike."""
    both = len(np.intersect1d(one, two, assume_unique=True))
    either = len(one) + len(two) - both
    return both / either if either else 0.0


def character_codes(text: str) -> Codes:
    """The sequences of WIDTH characters as numbers: Σ cₖ aᵏ modulo 2⁶⁴, with its bits mixed."""
    plain = _NOT_WORD.sub(" ", text.casefold()).strip()
    if not plain:
        return np.empty(0, np.uint64)
    characters = np.frombuffer(plain.ljust(WIDTH).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(characters, WIDTH)  # (T - 4, 5)
    codes = np.sort(_mixed(windows @ (_FACTOR ** np.arange(1, WIDTH + 1, dtype=np.uint64))))
    return codes[np.append(True, codes[1:] != codes[:-1])]


def _mixed(codes: Codes) -> Codes:
    """Every bit of the result depends on all of a code: the finishing steps of MurmurHash3."""
    codes = (codes ^ (codes >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    codes = (codes ^ (codes >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return codes ^ (codes >> np.uint64(33))


_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def _candidates(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places that share a band of their signatures, the earlier one first."""
    orders = np.random.default_rng(0).integers(1, 1 << 63, (BANDS * ROWS, 1), dtype=np.uint64)  # (64, 1)
    buckets: list[dict[bytes, list[int]]] = [defaultdict(list) for _ in range(BANDS)]
    for place, text in enumerate(texts):
        codes = character_codes(text)[:SKETCH]
        if not len(codes):
            continue
        signature = _mixed(codes ^ orders).min(1).reshape(BANDS, ROWS)
        for bucket, band in zip(buckets, signature, strict=True):
            members = bucket[band.tobytes()]
            for other in members:
                yield other, place
            if len(members) < COMPARED:
                members.append(place)
