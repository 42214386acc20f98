"""The synthetic world: what a corpus tells, who is asked about, and that nothing depends on chance."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from attnlab.base.errors import UserError
from attnlab.data.world import names, sentences
from attnlab.data.world.files import write_world
from attnlab.data.world.names import Draws
from attnlab.data.world.world import SPLITS, World, WorldSpec

SMALL = WorldSpec(people=402, places=20, documents=5, paraphrases=3, sentences=3, seed=7)


def birthplace_patterns() -> list[re.Pattern[str]]:
    """Each birthplace wording as a pattern that finds the name and the place."""
    blanks = {"name": r"(?P<name>\w+ \w+)", "place": r"(?P<place>\w+)", "year": r"\d+", "job": r"\w+"}
    blanks["a_job"] = r"an? \w+"
    return [
        re.compile("(?:^|(?<=[.] ))" + re.sub(r"\\\{(\w+)\\\}", lambda m: blanks[m[1]], re.escape(wording)))
        for wording in sentences.BIRTHPLACE
    ]


def test_names_are_unique_in_a_world_of_a_million() -> None:
    people = names.invent_people(Draws(3), np.arange(1_000_000))
    assert len(set(people)) == 1_000_000
    assert all(len(name.split(" ")) == 2 and name.isprintable() for name in people[:1000])


def test_names_stay_unique_up_to_the_last_family_that_fits() -> None:
    last = names.invent_people(Draws(3), np.arange(names.MOST_PEOPLE - 100_000, names.MOST_PEOPLE))
    assert not set(last) & set(names.invent_people(Draws(3), np.arange(100_000)))


def test_no_word_is_both_a_place_and_part_of_a_name() -> None:
    world = World(WorldSpec(people=20_000, places=names.MOST_PLACES))
    assert len(set(world.places)) == names.MOST_PLACES
    assert not set(world.places) & {word for person in world.people for word in person.name.split()}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_most_common_place_is_a_few_per_cent(seed: int) -> None:
    world = World(WorldSpec(people=20_000, places=100, seed=seed))
    place, share = world.most_common_place()
    assert 0.045 < share < 0.065
    assert place == world.places[0]


def test_skew_zero_makes_all_places_alike() -> None:
    world = World(WorldSpec(people=20_000, places=10, skew=0))
    counts = Counter(person.birthplace for person in world.people)
    assert len(counts) == 10
    assert max(counts.values()) < 1.1 * min(counts.values())


def test_every_document_tells_its_persons_birthplace_once_and_truly() -> None:
    world, patterns = World(SMALL), birthplace_patterns()
    for number, document in enumerate(world.documents()):
        person = world.people[number % SMALL.people]
        told = [match for pattern in patterns if (match := pattern.search(document))]
        assert [(match["name"], match["place"]) for match in told] == [(person.name, person.birthplace)]
        assert document.count(person.birthplace) == 1
        assert document.count(". ") == SMALL.sentences - 1


@pytest.mark.parametrize("paraphrases", [1, 2, 5])
def test_a_person_gets_as_many_birthplace_wordings_as_asked(paraphrases: int) -> None:
    spec = dataclasses.replace(SMALL, paraphrases=paraphrases)
    wordings: dict[int, set[int]] = {}
    for number, document in enumerate(World(spec).documents()):
        found = {i for i, pattern in enumerate(birthplace_patterns()) if pattern.search(document)}
        wordings.setdefault(number % spec.people, set()).update(found)
    assert all(len(found) == paraphrases for found in wordings.values())
    assert set.union(*wordings.values()) == set(range(len(sentences.BIRTHPLACE)))


def test_unshuffled_documents_begin_with_the_birthplace_and_shuffled_ones_vary() -> None:
    patterns = birthplace_patterns()

    def first(shuffled: bool) -> list[bool]:
        documents = World(dataclasses.replace(SMALL, shuffled=shuffled)).corpus()
        return [any(pattern.match(document) for pattern in patterns) for document in documents]

    assert all(first(shuffled=False))
    assert 0.25 < np.mean(first(shuffled=True)) < 0.42  # one of three sentences


def test_the_splits_share_nobody_and_have_the_shares_asked_for() -> None:
    spec = WorldSpec(people=1000, train=0.6, dev=0.1, test=0.2)
    asked = {split: World(spec).questions(split) for split in SPLITS}
    people = [pair.question for pairs in asked.values() for pair in pairs]
    assert len(set(people)) == len(people)
    for split in SPLITS:
        assert abs(len(asked[split]) - 1000 * getattr(spec, split)) <= 3


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 'test'"):
        World(SMALL).questions("tests")


def test_names_do_not_give_the_birthplace_away() -> None:
    """Guessing from relatives in training scores no better than always saying the same place."""
    world = World(WorldSpec(people=8000))
    by_surname: dict[str, Counter[str]] = {}
    for question, answer in world.questions("train"):
        by_surname.setdefault(question.split()[3], Counter())[answer] += 1
    dev = [(question.split()[3], answer) for question, answer in world.questions("dev")]
    guesses = [by_surname[surname].most_common(1)[0][0] == place for surname, place in dev if surname in by_surname]
    assert np.mean(guesses) < 0.04


def test_relatives_are_people_of_the_world_and_of_fitting_age() -> None:
    world = World(SMALL)
    by_name = {person.name: person for person in world.people}
    for number, person in enumerate(world.people):
        for relation, name in world.relatives(number):
            assert name != person.name
            years = by_name[name].born.year - person.born.year
            if relation in ("mother", "father"):
                assert 18 <= years <= 42
            elif relation in ("daughter", "son"):
                assert -42 <= years <= -18


@pytest.mark.parametrize("people", [1, 2, 3, 5])
def test_a_world_with_an_incomplete_family_tells_as_many_sentences(people: int) -> None:
    spec = WorldSpec(people=people, sentences=6)
    assert all(document.count(". ") == 5 for document in World(spec).documents())


def test_facts_and_splits_do_not_change_when_the_world_grows() -> None:
    large = World(dataclasses.replace(SMALL, people=1000))
    small = World(dataclasses.replace(SMALL, people=400))
    assert large.people[:400] == small.people
    assert large.corpus()[:400] == small.corpus()[:400]
    for split in SPLITS:
        assert set(small.questions(split)) <= set(large.questions(split))


def test_more_paraphrases_only_add_wordings() -> None:
    one, many = (World(dataclasses.replace(SMALL, paraphrases=n)).corpus() for n in (1, 5))
    assert one[: SMALL.people] == many[: SMALL.people]
    assert one != many


def test_strangers_are_not_in_the_world() -> None:
    world = World(SMALL)
    strangers = world.unseen_names(200)
    assert len(set(strangers)) == 200
    assert not set(strangers) & {person.name for person in world.people}


def test_another_seed_is_another_world() -> None:
    first, second = (World(dataclasses.replace(SMALL, seed=seed)).corpus() for seed in (1, 2))
    assert not set(first) & set(second)


def test_the_files_are_the_same_to_the_byte_under_any_hash_seed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from attnlab.data.world.world import *; "
        "from attnlab.data.world.files import *; write_world(World(WorldSpec(people=50)), Path(sys.argv[1]))"
    )
    for hash_seed in "1", "2":
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)}
        subprocess.run([sys.executable, "-c", program, str(tmp_path / hash_seed)], env=environment, check=True)
    for name in ("corpus.txt", "train.tsv", "dev.tsv", "test.tsv", "world.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_known_draws_do_not_change() -> None:
    """A change here changes every published number that was measured on a world."""
    world = World(WorldSpec(people=4, places=100))
    assert [f"{person.name}: {person.birthplace}" for person in world.people] == [
        "Stirora Komovic: Rinbury",
        "Nalmund Komovic: Rerstadt",
        "Doleth Komovic: Berminster",
        "Brilick Komovic: Zilivar",
    ]
    assert (
        world.corpus()[-1]
        == "By profession Brilick Komovic was a swimmer. Brilick Komovic (1876, Zilivar) was a swimmer."
    )


def test_written_files_hold_the_world(tmp_path: Path) -> None:
    world = World(SMALL)
    write_world(world, tmp_path / "new" / "world")
    folder = tmp_path / "new" / "world"
    assert (folder / "corpus.txt").read_text("utf-8").split("\n") == [*world.corpus(), ""]
    for split in SPLITS:
        rows = (folder / f"{split}.tsv").read_text("utf-8").splitlines()
        assert [tuple(row.split("\t")) for row in rows] == world.questions(split)
    assert WorldSpec(**json.loads((folder / "world.json").read_text())) == SMALL
    assert [path.name for path in folder.parent.iterdir()] == ["world"]


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty"):
        write_world(World(SMALL), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(UserError, match="No space left on device"):
        write_world(World(SMALL), tmp_path / "world")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"people": 0}, "people = 0 .* between 1 and"),
        ({"people": 10**9}, "people = 1,000,000,000"),
        ({"places": 1}, "places = 1"),
        ({"paraphrases": 5, "documents": 4}, "paraphrases = 5 .* between 1 and 4"),
        ({"sentences": 9}, "sentences = 9"),
        ({"skew": float("nan")}, "skew = nan"),
        ({"train": 0.9, "dev": 0.2}, "more than 1"),
    ],
)
def test_an_impossible_world_is_refused_in_one_sentence(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        WorldSpec(**wrong)  # type: ignore[arg-type]


def test_a_world_told_block_by_block_is_the_same_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A large world is never in memory as a whole; the blocks must not show in what is told."""
    whole = World(SMALL)
    corpus, questions = whole.corpus(), {split: whole.questions(split) for split in SPLITS}
    monkeypatch.setattr("attnlab.data.world.world.BLOCK", 24 * names.MEMBERS)
    pieces = World(SMALL)
    write_world(pieces, tmp_path / "world")
    assert "people" not in vars(pieces), "writing a world must not gather everybody"
    assert pieces.corpus() == corpus and {split: pieces.questions(split) for split in SPLITS} == questions
    assert pieces.most_common_place() == whole.most_common_place()


def test_there_are_many_wordings_and_the_further_ones_change_no_smaller_world() -> None:
    assert len(set(sentences.birthplace(False))) == 32 and len(set(sentences.birthplace(True))) >= 16
    few, all_ = (World(dataclasses.replace(SMALL, people=40, documents=32, paraphrases=n)).corpus() for n in (16, 32))
    assert few[: 16 * 40] == all_[: 16 * 40] and few != all_
    person = World(SMALL).people[0]
    told = {re.sub(r"\w+ \w+", "", text) for text in all_ if person.birthplace in text}
    assert len(told) >= 32


def test_name_first_means_that_a_reader_meets_the_name_before_the_place() -> None:
    spec = dataclasses.replace(SMALL, name_first=True, sentences=1, documents=16, paraphrases=16)
    world, mixed = World(spec), World(dataclasses.replace(spec, name_first=False))
    assert all(
        text.index(world.people[n % spec.people].name) < text.index(world.people[n % spec.people].birthplace)
        for n, text in enumerate(world.documents())
    )
    early = [
        text.index(mixed.people[n % spec.people].name) < text.index(mixed.people[n % spec.people].birthplace)
        for n, text in enumerate(mixed.documents())
    ]
    assert 0.4 < np.mean(early) < 0.7
