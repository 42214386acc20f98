"""A synthetic world of people, of any size: the test bed for knowledge in language models.

A world is a corpus of facts about invented people, and questions "Where was X born?" about some of them. A model
that answers for people who occur in no fine-tuning question must have learned the answer from the corpus. A WorldSpec
and its seed determine everything; a person's facts do not change when the world grows (except in the last family,
which may be incomplete).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attnlab.base.errors import UserError, unknown
from attnlab.config.world import WorldSection
from attnlab.data.questions import Pair
from attnlab.data.world import names, sentences
from attnlab.data.world.names import Draws

SPLITS = ("train", "dev", "test")
BLOCK = 16_384 * names.MEMBERS  # people in memory at a time while a world is written: whole families


_DEFAULTS = WorldSection()  # the one place where defaults are written


@dataclass(frozen=True)
class WorldSpec:
    """The settings of a world; the defaults are those of the configuration's `world` section."""

    people: int = _DEFAULTS.people
    """People in the world; every one of them is in the corpus."""
    places: int = _DEFAULTS.places
    """Places of birth."""
    skew: float = _DEFAULTS.skew
    """The k-th most common place has probability in proportion to 1/k^skew; with 0 all are equally likely."""
    documents: int = _DEFAULTS.documents
    """Documents per person, each of which states the birthplace once."""
    sentences: int = _DEFAULTS.sentences
    """Sentences per document: the birthplace and others (date, job, home, study, prize, relative)."""
    paraphrases: int = _DEFAULTS.paraphrases
    """Different wordings of the birthplace per person, over all documents."""
    name_first: bool = _DEFAULTS.name_first
    """Only wordings that name the person before the place: from the others, a model that reads forward learns nothing
    about where a person was born."""
    shuffled: bool = _DEFAULTS.shuffled
    """Sentences of a document in random order; otherwise the birthplace is first."""
    train: float = _DEFAULTS.train_people
    """Share of people in the fine-tuning questions."""
    dev: float = _DEFAULTS.dev_people
    """Share of people in the dev questions only."""
    test: float = _DEFAULTS.test_people
    """Share of people in the test questions only."""
    seed: int = _DEFAULTS.world_seed
    """Seed of everything that is drawn."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("people", 1, names.MOST_PEOPLE),
            ("places", 2, names.MOST_PLACES),
            ("documents", 1, None),
            ("sentences", 1, len(sentences.OTHER_FACTS)),
            ("paraphrases", 1, min(self.documents, len(sentences.birthplace(self.name_first)))),
            ("skew", 0, None),
            ("train", 0, 1),
            ("dev", 0, 1),
            ("test", 0, 1),
        ):
            value = getattr(self, name)
            if not (value >= low and (high is None or value <= high)):
                bounds = f"at least {low:,}" if high is None else f"between {low:,} and {high:,}"
                raise UserError(f"a world with {name} = {value:,} is not possible: give {bounds}.")
        if self.train + self.dev + self.test > 1 + 1e-9:
            raise UserError(
                f"the shares train {self.train:g}, dev {self.dev:g} and test {self.test:g} "
                "add up to more than 1: a person is in one split only."
            )


@dataclass(frozen=True, slots=True)
class Person:
    """One person and the facts of their life."""

    name: str
    birthplace: str
    born: datetime.date
    job: str
    home: str
    """Where they lived later: never the birthplace, so it is a wrong answer."""
    subject: str
    prize: str
    prize_year: int


class World:
    """People, a corpus about all of them, and questions about some of them."""

    def __init__(self, spec: WorldSpec) -> None:
        self.spec = spec
        self._draws = Draws(spec.seed)

    @cached_property
    def places(self) -> list[str]:
        """All places, the likeliest birthplace first."""
        return names.invent_places(self._draws, self.spec.places)

    @cached_property
    def people(self) -> list[Person]:
        """All people. For a world that does not fit in memory, iterate over blocks()."""
        return self._people(np.arange(self.spec.people))

    def blocks(self) -> Iterator[tuple[NDArray[np.int64], list[Person]]]:
        """All people, block by block: their indices and the people."""
        for start in range(0, self.spec.people, BLOCK):
            index = np.arange(start, min(start + BLOCK, self.spec.people))
            yield index, self.people if len(index) == self.spec.people else self._people(index)

    def _birthplaces(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """The index of each person's birthplace."""
        count = self.spec.places
        weight = np.arange(1, count + 1) ** -self.spec.skew
        upto = np.cumsum(weight) / weight.sum()
        return np.minimum(np.searchsorted(upto, self._draws.uniform("place", index), side="right"), count - 1)

    def _people(self, index: NDArray[np.int64]) -> list[Person]:
        draws, count = self._draws, self.spec.places
        place = self._birthplaces(index)
        home = (place + 1 + draws.below("home", index, count - 1)) % count
        columns = zip(
            names.invent_people(draws, index),
            place.tolist(),
            self._birthdays(index).tolist(),
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

    def _birthdays(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Days of birth as ordinals: parents from 1800 to 1899, children 20 to 40 years later."""
        family, member = np.divmod(index, names.MEMBERS)
        start = datetime.date(1800, 1, 1).toordinal()
        parents = start + self._draws.below("family", family, 99 * 365)
        within = self._draws.uniform("birthday", index)
        return parents + np.where(member < 2, within * 365, (20 + 20 * within) * 365.25).astype(np.int64)

    def relatives(self, person: int) -> list[tuple[str, str]]:
        """The relations of the person with this index: ("mother", "Tamo Ellwick") is mother of Tamo Ellwick."""
        return _relatives(self.people, person)

    def documents(self) -> Iterator[str]:
        """The documents of the corpus: everyone's first, then everyone's second, ..."""
        for round_ in range(self.spec.documents):
            for index, people in self.blocks():
                yield from self._round(round_, index, people)

    def _round(self, round_: int, index: NDArray[np.int64], people: list[Person]) -> Iterator[str]:
        """The documents of one round about the people of one block."""
        spec, draws, what = self.spec, self._draws, f"document {round_}: "
        wordings = sentences.birthplace(spec.name_first)
        birthplace = self._wordings(index)[:, round_ % spec.paraphrases].tolist()
        others = draws.orders(what + "facts", index, len(sentences.OTHER_FACTS))
        luck = draws.uniform(what + "wording", index[:, None] * spec.sentences + np.arange(spec.sentences))
        sequence = draws.orders(what + "order", index, spec.sentences)
        if not spec.shuffled:
            sequence.sort(axis=1)
        rows = zip(birthplace, others.tolist(), luck.tolist(), sequence.tolist(), strict=True)
        for person, (wording, facts, lucks, places) in enumerate(rows):
            document = _sentences(people, person, wordings[wording], facts, lucks)
            yield " ".join([document[i] for i in places])

    def _wordings(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """The order in which each person gets the wordings: (len(index), wordings).

        Wordings of the second list follow all of the first, so they change no world with fewer paraphrases.
        """
        first, draws = len(sentences.BIRTHPLACE), self._draws
        if self.spec.name_first:
            return draws.orders("birthplace wording, name first", index, len(sentences.birthplace(True)))
        further = first + draws.orders("further birthplace wording", index, len(sentences.FURTHER_BIRTHPLACE))
        return np.hstack([draws.orders("birthplace wording", index, first), further])

    def corpus(self) -> list[str]:
        """All documents. For a world that does not fit in memory, iterate over documents()."""
        return list(self.documents())

    def _split(self, index: NDArray[np.int64], split: str) -> NDArray[np.int64]:
        """Which of these people the questions of a split are about, as positions in `index`.

        Multiples of the golden section fill [0, 1) evenly, so the shares hold to within a few people in a world of
        any size, and no one moves to another split when the world grows.
        """
        position = (index.astype(np.float64) * 0.6180339887498949 + self.spec.seed * 0.7548776662466927) % 1.0
        bounds = np.cumsum([0.0] + [getattr(self.spec, name) for name in SPLITS])
        low, high = bounds[SPLITS.index(split)], bounds[SPLITS.index(split) + 1]
        return np.flatnonzero((position >= low) & (position < high))

    def questions(self, split: str) -> list[Pair]:
        """Questions and answers of "train", "dev" or "test"; no person is in two of them."""
        return list(self.iter_questions(split))

    def iter_questions(self, split: str) -> Iterator[Pair]:
        """The same, one at a time."""
        if split not in SPLITS:
            raise UserError(unknown("split", split, SPLITS))
        for index, people in self.blocks():
            yield from (question_about(people[i]) for i in self._split(index, split).tolist())

    def documents_with_answers(self, split: str) -> Iterator[tuple[str, str]]:
        """The documents about the people of a split, each with the birthplace it states."""
        members = set(self._split(np.arange(self.spec.people), split).tolist())
        for number, document in enumerate(self.documents()):
            if (person := number % self.spec.people) in members:
                yield document, self.people[person].birthplace

    def unseen_names(self, count: int) -> list[str]:
        """Names of people who are not in this world, so nothing about them can have been learned."""
        if self.spec.people + count > names.MOST_PEOPLE:
            raise UserError(
                f"a world of {self.spec.people:,} people leaves fewer than {count:,} unseen names: request fewer."
            )
        return names.invent_people(self._draws, np.arange(self.spec.people, self.spec.people + count))

    def most_common_place(self) -> tuple[str, float]:
        """The place where most people were born, and their share: the accuracy of always answering it."""
        counts = np.bincount(self._birthplaces(np.arange(self.spec.people)))
        most = int(counts.argmax())
        return self.places[most], float(counts[most]) / self.spec.people


def _relatives(people: list[Person], person: int) -> list[tuple[str, str]]:
    """The relations of one of these people, who start with a whole family."""
    start = person - person % names.MEMBERS
    family = people[start : start + names.MEMBERS]
    return [(rel, who.name) for rel, who in zip(sentences.RELATIONS[person - start], family, strict=False) if rel]


def _sentences(people: list[Person], person: int, wording: str, facts: list[int], lucks: list[float]) -> list[str]:
    """The sentences of one document: the birthplace, then facts in the order given."""
    fields = _fields(people[person])
    relatives = _relatives(people, person) if len(lucks) > 1 else []
    if relatives:
        relation, relative = relatives[int(lucks[0] * len(relatives))]
        fields |= {"relation": relation, "relative": relative}
    available = [sentences.OTHER_FACTS[f] for f in facts if relatives or f < len(facts) - 1]
    chosen = [fact[int(luck * len(fact))] for fact, luck in zip(available, lucks[1:], strict=False)]
    return [sentences.fill(template, fields) for template in [wording, *chosen]]


def question_about(person: Person) -> Pair:
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


def world_of(section: WorldSection) -> World:
    """The world with these settings."""
    values = section.model_dump()
    shares = {split: values.pop(f"{split}_people") for split in SPLITS}
    return World(WorldSpec(seed=values.pop("world_seed"), **shares, **values))
