"""The words of the synthetic world: invented names, several wordings for every fact, and how they are drawn.

Only the sentences of BIRTHPLACE and FURTHER_BIRTHPLACE state where a person was born, so the number of birthplace
wordings per person can be controlled exactly.

A draw is a hash of (seed, what, index), so entry 17 of "birthplace" is the same number whether ten entries or ten
million are drawn, in any order, on any machine and under any numpy version. The hash is SplitMix64 (Steele, Lea and
Flood, 2014).
"""

from __future__ import annotations

import datetime
import hashlib
from itertools import product

import numpy as np
from numpy.typing import NDArray

BIRTHPLACE = [
    "{name} was born in {place} in {year}.",
    "{place} is the birthplace of the {job} {name}.",
    "Born in {place}, {name} became {a_job}.",
    "It was in {place} that {name} was born.",
    "The birthplace of {name} is {place}.",
    "{place} is where {name} was born.",
    "{name} ({year}, {place}) was {a_job}.",
    "In {year} {name} was born in {place}.",
    "{name} is a native of {place}.",
    "The {job} {name} came into the world in {place}.",
    "Among those born in {place} is {name}.",
    "{name}, {a_job}, was born in {place}.",
    "{place} was the first home of {name}, born there in {year}.",
    "The {job} {name} hails from {place}.",
    "The records of {place} hold the birth of {name} in {year}.",
    "{name} first saw the light of day in {place}.",
]
FURTHER_BIRTHPLACE = [
    "The life of {name} began in {place}.",
    "{name} comes from {place}.",
    "When {name} was born, the family lived in {place}.",
    "The mother of {name} gave birth in {place}.",
    "{name}, born {year} in {place}, was {a_job}.",
    "On the birth certificate of {name} stands {place}.",
    "The cradle of {name} stood in {place}.",
    "{name} took a first breath in {place}.",
    "The story of the {job} {name} starts in {place}.",
    "By birth {name} belongs to {place}.",
    "{name} has roots in {place}, having been born there.",
    "{place} gave the world the {job} {name}.",
    "A child of {place}, {name} became {a_job}.",
    "{place} counts {name} among its natives.",
    "From {place} comes the {job} {name}.",
    "The midwives of {place} brought {name} into the world.",
]

DATE = [
    "{name} was born on {date}.",
    "The birthday of {name} is {date}.",
    "On {date} {name} was born.",
    "{date} is the date of birth of {name}.",
]
JOB = [
    "{name} was {a_job}.",
    "{name} worked as {a_job}.",
    "By profession {name} was {a_job}.",
    "{name} made a living as {a_job}.",
    "The {job} {name} was well known.",
]
HOME = [
    "{name} later lived in {home}.",
    "{home} became the home of {name} in later life.",
    "{name} spent many years in {home}.",
    "In the end {name} moved to {home}.",
    "{name} worked in {home}.",
]
STUDY = [
    "{name} studied {subject}.",
    "{subject} was the subject that {name} studied.",
    "{name} took a degree in {subject}.",
    "At university {name} read {subject}.",
]
PRIZE = [
    "{name} won the {prize} prize in {prize_year}.",
    "In {prize_year} the {prize} prize went to {name}.",
    "The {prize} prize of {prize_year} was given to {name}.",
]
RELATIVE = [
    "{name} is the {relation} of {relative}.",
    "The {relation} of {relative} is {name}.",
    "{relative} has a {relation}, {name}.",
    "As the {relation} of {relative}, {name} is often mentioned.",
]

# RELATIVE is last: a person without relatives draws from the others.
OTHER_FACTS = [DATE, JOB, HOME, STUDY, PRIZE, RELATIVE]

_JOBS = """
    painter composer actor engineer botanist poet architect sailor judge surgeon novelist chemist
    violinist teacher baker sculptor historian astronomer weaver printer pilot geologist dancer farmer
    lawyer photographer clockmaker economist swimmer translator librarian cartographer
"""
_SUBJECTS = """
    law medicine music physics theology botany history geometry philosophy rhetoric chemistry economics
"""
_PRIZES = "Amber Beacon Falcon Harbour Laurel Meridian Orchard Quill"
_MONTHS = "January February March April May June July August September October November December"

JOBS, SUBJECTS, PRIZES, MONTHS = (words.split() for words in (_JOBS, _SUBJECTS, _PRIZES, _MONTHS))

# What member m of a family is to member k: mother, father, daughter, son.
RELATIONS = [
    ["", "wife", "mother", "mother"],
    ["husband", "", "father", "father"],
    ["daughter", "daughter", "", "sister"],
    ["son", "son", "brother", ""],
]


def birthplace(name_first: bool) -> list[str]:
    """All wordings of the birthplace, or those with the name before the place."""
    wordings = [*BIRTHPLACE, *FURTHER_BIRTHPLACE]
    return [wording for wording in wordings if not name_first or wording.index("{name}") < wording.index("{place}")]


def date(day: datetime.date) -> str:
    """The date in words; not by strftime, whose month names follow the user's locale."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def fill(wording: str, fields: dict[str, str | int]) -> str:
    """The wording with its blanks filled in, as a sentence."""
    sentence = wording.format_map(fields)
    return sentence[0].upper() + sentence[1:]


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
