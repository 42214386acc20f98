"""What is said about labelled texts: near-duplicates as comparing all pairs finds them, rare classes, size."""

from __future__ import annotations

import random

import pytest

from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.near_duplicates import ALIKE, WIDTH, near_duplicates
from attnlab.data.tasks.observations import observe

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "rt", "ck", "ll")]


def texts(count: int, seed: int) -> list[str]:
    """Random sentences, every third a copy of an earlier one with one word changed, some with only a comma added."""
    generator = random.Random(seed)
    made: list[str] = []
    for place in range(count):
        if place % 3 == 2:
            words = generator.choice(made).split()
            change = generator.randrange(len(words))
            words[change] = generator.choice(WORDS) if place % 2 else f"{words[change]},"
            made.append(" ".join(words))
        else:
            made.append(" ".join(generator.choices(WORDS, k=generator.randint(8, 25))))
    return made


def sequences(text: str) -> set[str]:
    plain = " ".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())
    return {plain[place : place + WIDTH] for place in range(max(1, len(plain) - WIDTH + 1))}


@pytest.mark.parametrize("seed", range(3))
def test_near_duplicates_are_those_of_comparing_all_pairs(seed: int) -> None:
    rows = texts(150, seed)
    sets = [sequences(text) for text in rows]
    expected: dict[int, set[int]] = {}
    for two in range(len(rows)):
        for one in range(two):
            if rows[one] != rows[two] and len(sets[one] & sets[two]) >= ALIKE * len(sets[one] | sets[two]):
                expected.setdefault(two, set()).add(one)
    found = {pair.second: pair for pair in near_duplicates(rows)}
    assert found.keys() == expected.keys() and len(found) > 20
    for two, pair in found.items():
        assert pair.first in expected[two]
        one = sets[pair.first]
        assert pair.similarity == pytest.approx(len(one & sets[two]) / len(one | sets[two]))


def test_unrelated_and_empty_texts_are_no_near_duplicates() -> None:
    assert near_duplicates([*texts(90, 7)[::3], "", "", "!?"]) == []


def labelled(**splits: list[tuple[str, int]]) -> LabelledSet:
    examples = {split: [LabelledText(text, label) for text, label in rows] for split, rows in splits.items()}
    return LabelledSet("x", ("rare", "usual", "other"), examples)


def test_an_even_set_of_different_texts_needs_no_word() -> None:
    rows = [(text, place % 3) for place, text in enumerate(texts(900, 1)[::3])]
    assert observe(labelled(train=rows)) == []


def test_classes_that_differ_in_capitals_are_named() -> None:
    rows = [LabelledText(text, place % 4) for place, text in enumerate(texts(900, 1)[::3])]
    said = observe(LabelledSet("x", ("Neg", "Pos", "card lost", "card_lost"), {"train": rows}))
    assert said == ["the classes 'card lost', 'card_lost' differ in capitals or blanks only: they may be one."]


def test_rare_classes_small_splits_and_repeats_are_said() -> None:
    first = (
        "the room was small and the staff were friendly on every day of our stay, from breakfast until late at night"
    )
    rows = [(text, 1 + place % 2) for place, text in enumerate(texts(300, 2)[::3])]
    said = observe(labelled(train=[*rows, (first, 0)], test=[(first.replace("small", "tiny"), 1)]))
    assert any(text.startswith("'rare' has a single training example") for text in said)
    assert any("classes are uneven" in text and "--choose-by macro_f1" in text for text in said)
    assert any(text.startswith("test has 1 rows") for text in said)
    assert any(text.startswith("test: 1 text is nearly one of train") for text in said)
