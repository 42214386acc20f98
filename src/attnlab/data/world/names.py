"""Invented names of people and places, built from syllables.

Every name is an onset, a middle and an ending. First names of women and of men, surnames and places have different
endings, so no word belongs to two of these lists.
"""

from __future__ import annotations

import hashlib
from itertools import product

import numpy as np
from numpy.typing import NDArray

_ONSETS = "B Br C D Dr F G Gr H J K L M N P R S St T Th Tr V W Z"
_MIDDLES = "al am an ar av el em en er il in ir ol om on or ul ur"
_WOMEN = "a ia ina elle eth is wen ora"
_MEN = "o ric us ick iano mund tor bert"
_SURNAMES = (
    "wick ford mere stead combe lock son sen ley den dale ridge shaw gate worth grove kin man more nor "
    "quist strom vane well brook burn cliffe croft drake feld garth hart holt hurst lind low mont mark "
    "sley thorpe wald berg ane aux ero ovic enko"
)
_PLACES = (
    "avel burg mouth haven port stadt minster ona ene ossa ivar undra isk oum ville grad polis bury "
    "vik ania eska oville umba arra"
)

MEMBERS = 4  # a family: mother, father, daughter, son
_FIRST_NAMES = 256  # of women, and as many of men
_FAMILIES_PER_SURNAME = _FIRST_NAMES // (MEMBERS // 2)


def _words(endings: str) -> list[str]:
    parts = product(_ONSETS.split(), _MIDDLES.split(), endings.split())
    return list(dict.fromkeys(map("".join, parts)))


SURNAMES = len(_words(_SURNAMES))
MOST_PEOPLE = SURNAMES * _FAMILIES_PER_SURNAME * MEMBERS
MOST_PLACES = len(_words(_PLACES))


def invent_places(draws: Draws, count: int) -> list[str]:
    """`count` different place names."""
    return draws.shuffled("places", _words(_PLACES))[:count]


def invent_people(draws: Draws, index: NDArray[np.int64]) -> list[str]:
    """The full names of the people with these indices, all different.

    Four people in a row are a family and share a surname. A family is mapped by a one-to-one affine
    map to a (surname, slot) pair, and a slot has two women's and two men's first names: so no full name occurs twice,
    and no name depends on how many people there are.
    """
    women = draws.shuffled("women", _words(_WOMEN))[:_FIRST_NAMES]
    men = draws.shuffled("men", _words(_MEN))[:_FIRST_NAMES]
    surnames = draws.shuffled("surnames", _words(_SURNAMES))

    family, member = np.divmod(index, MEMBERS)
    cell = (family * _step(SURNAMES * _FAMILIES_PER_SURNAME)) % (SURNAMES * _FAMILIES_PER_SURNAME)
    slot, surname = np.divmod(cell, SURNAMES)
    generation, man = np.divmod(member, 2)
    # A surname rotates the first names, or every family in slot 0 would have the same four.
    first = (2 * slot + generation + draws.below("rotation", surname, _FIRST_NAMES)) % _FIRST_NAMES
    return [
        f"{(men if m else women)[f]} {surnames[s]}"
        for f, m, s in zip(first.tolist(), man.tolist(), surname.tolist(), strict=True)
    ]


def _step(cells: int) -> int:
    """A number near the golden section of `cells`, and coprime to it: its multiples spread evenly."""
    step = int(cells * 0.6180339887498949)
    while np.gcd(step, cells) != 1:
        step += 1
    return step


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Draws:
    """Independent random sequences, one per name."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def uniform(self, what: str, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Numbers in [0, 1), one per entry of `index`."""
        key = hashlib.blake2b(f"{self.seed}/{what}".encode(), digest_size=8).digest()
        with np.errstate(over="ignore"):
            state = np.uint64(int.from_bytes(key, "little")) + (index.astype(np.uint64) + np.uint64(1)) * _GOLDEN
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
        return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, what: str, index: NDArray[np.int64], bound: int) -> NDArray[np.int64]:
        """Whole numbers in [0, bound), one per entry of `index`."""
        return (self.uniform(what, index) * bound).astype(np.int64)

    def orders(self, what: str, index: NDArray[np.int64], items: int) -> NDArray[np.int64]:
        """A random order of range(items) per entry of `index`: (len(index), items)."""
        cells = index[:, None] * items + np.arange(items)
        return np.argsort(self.uniform(what, cells), axis=1, kind="stable")

    def shuffled(self, what: str, items: list[str]) -> list[str]:
        """The items in a random order."""
        order = self.orders(what, np.zeros(1, dtype=np.int64), len(items))[0]
        return [items[i] for i in order]
