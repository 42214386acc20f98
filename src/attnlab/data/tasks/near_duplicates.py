"""Texts that are nearly the same: MinHash signatures of their character sequences, compared only where they meet.

The similarity is the Jaccard index of the sets of five consecutive characters, without case, punctuation and doubled
blanks. Two sets have the same minimum under a random order with a probability equal to their Jaccard index (Broder
1997); with 16 groups of 4 such minima, a pair of similarity 0.8 shares a group with probability 0.9998. Time grows with
the number of texts, not with its square.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

ALIKE = 0.8
WIDTH = 5
BANDS, ROWS = 16, 4
COMPARED = 8
"""Texts of a bucket that each further one is compared with: a bucket of boilerplate must not cost its square."""
PRIME = (1 << 31) - 1
_NOT_WORD = re.compile(r"[\W_]+")


class NearPair(NamedTuple):
    first: int
    second: int
    similarity: float


def near_duplicates(texts: Sequence[str], least: float = ALIKE) -> list[NearPair]:
    """Pairs of places whose texts are alike but not equal, each text with the first one it resembles."""
    shingles = [_shingles(text) for text in texts]
    pairs: dict[int, NearPair] = {}
    for first, second in _candidates(shingles):
        known = pairs.get(second)
        if known is not None and known.first <= first:
            continue
        similarity = jaccard(shingles[first], shingles[second])
        if similarity >= least and texts[first] != texts[second]:
            pairs[second] = NearPair(first, second, similarity)
    return sorted(pairs.values())


def jaccard(one: frozenset[int], two: frozenset[int]) -> float:
    """|A ∩ B| / |A ∪ B|; two empty sets are not alike."""
    either = len(one | two)
    return len(one & two) / either if either else 0.0


def _shingles(text: str) -> frozenset[int]:
    plain = _NOT_WORD.sub(" ", text.casefold()).strip()
    count = max(1, len(plain) - WIDTH + 1)
    return (
        frozenset(zlib.crc32(plain[place : place + WIDTH].encode()) for place in range(count)) if plain else frozenset()
    )


def _candidates(shingles: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Places that share a band of their signatures, the earlier one first."""
    generator = np.random.default_rng(0)
    factors, shifts = generator.integers(1, PRIME, (2, BANDS * ROWS, 1), dtype=np.uint64)  # (64, 1) each
    buckets: list[dict[bytes, list[int]]] = [defaultdict(list) for _ in range(BANDS)]
    for place, codes in enumerate(shingles):
        if not codes:
            continue
        values = np.fromiter(codes, np.uint64, len(codes)) % np.uint64(PRIME)
        signature = ((factors * values + shifts) % np.uint64(PRIME)).min(1).reshape(BANDS, ROWS)
        for bucket, band in zip(buckets, signature, strict=True):
            members = bucket[band.tobytes()]
            for other in members:
                yield other, place
            if len(members) < COMPARED:
                members.append(place)
