"""A made split: in proportion, repeatable, without leaks; and repeats that were there already are found."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.splits import find_repeats, same_text, split_off
from attnlab.data.tasks.summary import lengths, summarise

SHARES = {"dev": 0.1, "test": 0.2}


def test_every_class_keeps_its_proportion() -> None:
    examples = [LabelledText(f"t{n}", int(n % 10 == 0)) for n in range(1000)]
    splits = split_off(examples, SHARES, seed=3)
    for split, share in {**SHARES, "train": 0.7}.items():
        counts = Counter(example.label for example in splits[split])
        assert counts == {0: round(900 * share), 1: round(100 * share)}


def test_the_seed_decides() -> None:
    examples = [LabelledText(f"t{n}", n % 2) for n in range(200)]
    assert split_off(examples, SHARES, seed=1) == split_off(examples, SHARES, seed=1)
    assert split_off(examples, SHARES, seed=1)["test"] != split_off(examples, SHARES, seed=2)["test"]


@settings(max_examples=30)
@given(st.lists(st.builds(LabelledText, st.sampled_from(["a", "A ", "b", "c", "d d", "d  D", "e"]), st.integers(0, 2))))
def test_parts_hold_all_rows_once_and_share_no_text(examples: list[LabelledText]) -> None:
    splits = split_off(examples, SHARES, seed=0)
    assert Counter(example for part in splits.values() for example in part) == Counter(examples)
    texts = [{same_text(example) for example in part} for part in splits.values()]
    assert sum(map(len, texts)) == len(set().union(*texts))


def test_repeats_across_splits_and_contradictions_inside_one_are_found() -> None:
    data = LabelledSet(
        "x",
        ("no", "yes"),
        {
            "train": [LabelledText("Same  text", 0), LabelledText("same text", 1), LabelledText("q", 0, "p")],
            "dev": [LabelledText("SAME TEXT", 0), LabelledText("q", 0, "another p")],
            "test": [LabelledText("same text", 1), LabelledText("same text", 1)],
        },
    )
    repeats = find_repeats(data)
    assert {splits: len(found) for splits, found in repeats.across.items()} == {
        ("train", "dev"): 1,
        ("train", "test"): 2,
        ("dev", "test"): 2,
    }
    assert repeats.contradicting == {"train": [[LabelledText("Same  text", 0), LabelledText("same text", 1)]]}
    summary = summarise(data)
    assert summary["across"]["test in train"]["count"] == 2
    assert summary["contradicting"]["train"]["count"] == 1


def test_weights_make_classes_equal_in_sum() -> None:
    examples = [LabelledText(f"t{n}", 0 if n < 90 else 1) for n in range(100)]
    data = LabelledSet("x", ("a", "b", "never"), {"train": examples})
    weights, counts = data.weights(), data.counts("train")
    assert weights[0] * counts[0] == pytest.approx(weights[1] * counts[1])
    assert counts[2] == weights[2] == 0


def test_lengths_are_of_text_and_pair_together() -> None:
    found = lengths([LabelledText("x" * n, 0, "y z") for n in range(1, 102)])
    assert found["words"] == dict.fromkeys(found["words"], 3)
    assert found["characters"] == {"least": 5, "25%": 30, "median": 55, "75%": 80, "95%": 100, "most": 105}
