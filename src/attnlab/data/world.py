"""A synthetic world of people, as large as asked: the test bed for knowledge in language models.

A world is a corpus that tells facts about invented people, and questions "Where was X born?" about
some of them. A model that answers for people who occur in no fine-tuning question must have the
answer from the corpus. Everything is controlled by a WorldSpec and decided by its seed; nobody's
facts change when the world grows (but for the last family, which may still be incomplete).
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attnlab.data import names, sentences
from attnlab.data.draws import Draws
from attnlab.data.pairs import Pair
from attnlab.errors import UserError, unknown

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class WorldSpec:
    """What a world is made of."""

    people: int = 5000
    """People in the world; every one of them is in the corpus."""
    places: int = 100
    """Places to be born in."""
    skew: float = 0.5
    """The k-th most common place has probability in proportion to 1/k^skew; 0 makes all alike."""
    documents: int = 4
    """Documents about a person, each of which tells the birthplace once."""
    sentences: int = 2
    """Sentences a document: the birthplace and others (date, job, home, study, prize, relative)."""
    paraphrases: int = 4
    """Different wordings of the birthplace a person gets over all documents."""
    shuffled: bool = True
    """Sentences of a document in random order; otherwise the birthplace comes first."""
    train: float = 0.5
    """Share of the people who are asked about in fine-tuning."""
    dev: float = 0.25
    """Share of the people who are asked about in the dev set only."""
    test: float = 0.25
    """Share of the people who are asked about in the test set only."""
    seed: int = 0
    """Decides everything that is drawn."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("people", 1, names.MOST_PEOPLE),
            ("places", 2, names.MOST_PLACES),
            ("documents", 1, None),
            ("sentences", 1, len(sentences.OTHER_FACTS)),
            ("paraphrases", 1, min(self.documents, len(sentences.BIRTHPLACE))),
            ("skew", 0, None),
            ("train", 0, 1),
            ("dev", 0, 1),
            ("test", 0, 1),
        ):
            value = getattr(self, name)
            if not (value >= low and (high is None or value <= high)):
                bounds = f"at least {low:,}" if high is None else f"between {low:,} and {high:,}"
                raise UserError(f"a world with {name} = {value:,} cannot be made: give {bounds}.")
        if self.train + self.dev + self.test > 1 + 1e-9:
            raise UserError(
                f"the shares train {self.train:g}, dev {self.dev:g} and test {self.test:g} "
                "add up to more than 1: nobody can be in two of them."
            )


@dataclass(frozen=True, slots=True)
class Person:
    """One inhabitant and the facts of their life."""

    name: str
    birthplace: str
    born: datetime.date
    job: str
    home: str
    """Where they lived later: never the birthplace, so that it is a wrong answer."""
    subject: str
    prize: str
    prize_year: int


class World:
    """People, a corpus about all of them, and questions about some of them."""

    def __init__(self, spec: WorldSpec) -> None:
        self.spec = spec
        self._draws = Draws(spec.seed)
        self._index = np.arange(spec.people)

    @cached_property
    def places(self) -> list[str]:
        """All places, the likeliest birthplace first."""
        return names.invent_places(self._draws, self.spec.places)

    @cached_property
    def people(self) -> list[Person]:
        draws, index, count = self._draws, self._index, self.spec.places
        weight = np.arange(1, count + 1) ** -self.spec.skew
        upto = np.cumsum(weight) / weight.sum()
        place = np.minimum(np.searchsorted(upto, draws.uniform("place", index), side="right"), count - 1)
        home = (place + 1 + draws.below("home", index, count - 1)) % count
        columns = zip(
            names.invent_people(draws, index),
            place.tolist(),
            self._birthdays().tolist(),
            draws.below("job", index, len(sentences.JOBS)).tolist(),
            home.tolist(),
            draws.below("subject", index, len(sentences.SUBJECTS)).tolist(),
            draws.below("prize", index, len(sentences.PRIZES)).tolist(),
            draws.below("age at prize", index, 30).tolist(),
            strict=True,
        )
        return [
            Person(
                name=name,
                birthplace=self.places[place],
                born=(born := datetime.date.fromordinal(day)),
                job=sentences.JOBS[job],
                home=self.places[home],
                subject=sentences.SUBJECTS[subject],
                prize=sentences.PRIZES[prize],
                prize_year=born.year + 30 + age,
            )
            for name, place, day, job, home, subject, prize, age in columns
        ]

    def _birthdays(self) -> NDArray[np.int64]:
        """Days of birth as ordinals: parents from 1800 to 1899, children 20 to 40 years later."""
        family, member = np.divmod(self._index, names.MEMBERS)
        start = datetime.date(1800, 1, 1).toordinal()
        parents = start + self._draws.below("family", family, 99 * 365)
        within = self._draws.uniform("birthday", self._index)
        return parents + np.where(member < 2, within * 365, (20 + 20 * within) * 365.25).astype(np.int64)

    def relatives(self, person: int) -> list[tuple[str, str]]:
        """What the person with this number is to whom: [("mother", "Tamo Ellwick"), ...]."""
        start = person - person % names.MEMBERS
        family = self.people[start : start + names.MEMBERS]
        relations = sentences.RELATIONS[person - start]
        return [(rel, who.name) for rel, who in zip(relations, family, strict=False) if rel]

    def documents(self) -> Iterator[str]:
        """The corpus, one document after the other: everybody's first, then everybody's second, ..."""
        spec, draws = self.spec, self._draws
        order = draws.orders("birthplace wording", self._index, len(sentences.BIRTHPLACE))
        wordings = order[:, : spec.paraphrases].tolist()
        for round_ in range(spec.documents):
            what = f"document {round_}: "
            others = draws.orders(what + "facts", self._index, len(sentences.OTHER_FACTS))
            luck = draws.uniform(what + "wording", self._index[:, None] * spec.sentences + np.arange(spec.sentences))
            sequence = draws.orders(what + "order", self._index, spec.sentences)
            if not spec.shuffled:
                sequence.sort(axis=1)
            rows = zip(others.tolist(), luck.tolist(), sequence.tolist(), strict=True)
            for person, (facts, lucks, places) in enumerate(rows):
                wording = sentences.BIRTHPLACE[wordings[person][round_ % spec.paraphrases]]
                told = self._tell(person, wording, facts, lucks)
                yield " ".join([told[i] for i in places])

    def _tell(self, person: int, wording: str, facts: list[int], lucks: list[float]) -> list[str]:
        """The sentences of one document: the birthplace, then facts in the order given."""
        fields = _fields(self.people[person])
        relatives = self.relatives(person) if len(lucks) > 1 else []
        if relatives:
            relation, relative = relatives[int(lucks[0] * len(relatives))]
            fields |= {"relation": relation, "relative": relative}
        known = [sentences.OTHER_FACTS[f] for f in facts if relatives or f < len(facts) - 1]
        chosen = [fact[int(luck * len(fact))] for fact, luck in zip(known, lucks[1:], strict=False)]
        return [sentences.tell(each, fields) for each in [wording, *chosen]]

    def corpus(self) -> list[str]:
        """All documents. For a world that does not fit in memory, iterate over documents()."""
        return list(self.documents())

    @cached_property
    def _position(self) -> NDArray[np.float64]:
        """A number in [0, 1) for everybody that says which split they are in.

        Multiples of the golden section fill [0, 1) evenly, so the shares hold to within a few
        people in a world of any size, and nobody moves to another split when the world grows.
        """
        return (self._index.astype(np.float64) * 0.6180339887498949 + self.spec.seed * 0.7548776662466927) % 1.0

    def questions(self, split: str) -> list[Pair]:
        """Questions and answers of "train", "dev" or "test"; no person is in two of them."""
        if split not in SPLITS:
            raise UserError(unknown("split", split, SPLITS))
        bounds = np.cumsum([0.0] + [getattr(self.spec, name) for name in SPLITS])
        low, high = bounds[SPLITS.index(split)], bounds[SPLITS.index(split) + 1]
        chosen = np.flatnonzero((self._position >= low) & (self._position < high))
        return [ask(self.people[i]) for i in chosen.tolist()]

    def strangers(self, count: int) -> list[str]:
        """Names of people who are not in this world: nothing about them can have been learned."""
        if self.spec.people + count > names.MOST_PEOPLE:
            raise UserError(f"a world of {self.spec.people:,} people has no {count:,} names left: ask for fewer.")
        return names.invent_people(self._draws, np.arange(self.spec.people, self.spec.people + count))

    def most_common_place(self) -> tuple[str, float]:
        """The place where most people were born, and their share: what guessing it always would score."""
        place, count = Counter(person.birthplace for person in self.people).most_common(1)[0]
        return place, count / self.spec.people


def ask(person: Person) -> Pair:
    return Pair(f"Where was {person.name} born?", person.birthplace)


def _fields(person: Person) -> dict[str, str | int]:
    return {
        "name": person.name,
        "place": person.birthplace,
        "year": person.born.year,
        "date": sentences.date(person.born),
        "job": person.job,
        "a_job": sentences.with_article(person.job),
        "home": person.home,
        "subject": person.subject,
        "prize": person.prize,
        "prize_year": person.prize_year,
    }
