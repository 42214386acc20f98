"""Folds: every row is tested once, a text is in one fold only, classes keep their proportion."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.base.errors import UserError
from attnlab.data.tasks.folds import Fold, fold_of
from attnlab.data.tasks.labelled import LabelledText
from attnlab.data.tasks.splits import same_text

MISSING = ["dev", "test"]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=40, max_size=80), st.integers(2, 5), st.integers(0, 3))
def test_every_row_is_tested_once_by_models_that_never_saw_its_text(labels: list[int], count: int, seed: int) -> None:
    examples = [LabelledText(f"t{n // 2}" + " " * (n % 2), label) for n, label in enumerate(labels)]  # twice each
    tested: Counter[LabelledText] = Counter()
    for number in range(1, count + 1):
        splits, _ = Fold(count, number)(examples, MISSING, seed)
        tested.update(splits["test"])
        assert Counter(e for part in splits.values() for e in part) == Counter(examples)
        texts = [{same_text(e) for e in part} for part in splits.values()]
        assert sum(map(len, texts)) == len(set().union(*texts))
    assert tested == Counter(examples)


def test_classes_keep_their_proportion_and_the_seed_decides() -> None:
    examples = [LabelledText(f"t{n}", int(n % 10 == 0)) for n in range(500)]
    folds = fold_of(examples, 5, seed=1)
    counts = Counter((fold, example.label) for fold, example in zip(folds, examples, strict=True))
    assert all(counts[fold, 0] == 90 and counts[fold, 1] == 10 for fold in range(1, 6))
    assert folds == fold_of(examples, 5, seed=1) != fold_of(examples, 5, seed=2)


def test_a_rare_class_is_missing_in_some_folds_and_that_is_no_error() -> None:
    examples = [LabelledText(f"t{n}", int(n < 2)) for n in range(50)]
    assert set(fold_of(examples, 5, seed=0)) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("examples", "sentence"),
    [
        ([LabelledText(f"t{n}", n % 2) for n in range(9)], "9 different texts are too few for 5 folds"),
        ([LabelledText(f"t{n}", n // 2) for n in range(20)], "no class has 5 rows"),
    ],
)
def test_too_few_rows(examples: list[LabelledText], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        fold_of(examples, 5, seed=0)


def test_own_splits_and_folds_contradict_each_other() -> None:
    with pytest.raises(UserError, match="leave out --dev and --test, or --folds"):
        Fold(5, 1)([LabelledText("x", 0)], ["test"], 0)
