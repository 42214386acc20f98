"""Texts and labels of every form that Python has reach the engine unchanged, or are refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.api.classifier_inputs import InputError, class_words, hand_over, to_examples, word_classes
from attnlab.base.errors import UserError
from attnlab.config.classify import TextsSection
from attnlab.data.tasks.catalog import read_texts
from attnlab.data.tasks.labelled import label_word

TEXTS = ["a film", "", "\u2028 \t\"quoted\" 'text'\r\n\x00\ufeff{}\x85", "ﬁlm 🎬"]
FORMS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "array of str": np.array(TEXTS),
    "array of objects": np.array(TEXTS, dtype=object),
    "one column": np.array(TEXTS, dtype=object)[:, None],
    "Series": pandas.Series(TEXTS),
    "Series of strings": pandas.Series(TEXTS, dtype="string"),
    "column of a DataFrame": pandas.DataFrame({"text": TEXTS}),
}
PAIR_FORMS = {
    "list of tuples": [("a", "b"), ("c", "")],
    "list of lists": [["a", "b"], ["c", ""]],
    "array": np.array([["a", "b"], ["c", ""]]),
    "DataFrame": pandas.DataFrame({"question": ["a", "c"], "passage": ["b", ""]}),
}


@pytest.mark.parametrize("form", FORMS)
def test_texts(form: str) -> None:
    examples = to_examples(FORMS[form])
    assert [example.text for example in examples] == TEXTS and all(type(example.text) is str for example in examples)
    assert all(example.pair is None for example in examples)


@pytest.mark.parametrize("form", PAIR_FORMS)
def test_pairs(form: str) -> None:
    assert [(example.text, example.pair) for example in to_examples(PAIR_FORMS[form])] == [("a", "b"), ("c", "")]


WRONG = {
    "a text": ("Dull.", "X is a text, expected a list"),
    "a set": ({"a"}, "X is of type set"),
    "bytes": (b"Dull.", "X is of type bytes"),
    "a generator": ((text for text in "ab"), "X is of type generator"),
    "nothing": ([], "X is empty"),
    "a number": (["a", 5], r"X\[1\] is 5, expected a text"),
    "bytes inside": ([b"a"], r"X\[0\] is b'a'"),
    "None": (["a", None], r"X\[1\] is missing"),
    "NaN": (pandas.Series(["a", float("nan")]), r"X\[1\] is missing"),
    "NA": (pandas.Series(["a", None], dtype="string"), r"X\[1\] is missing"),
    "three columns": (np.array([["a", "b", "c"]]), r"shape \(1, 3\)"),
    "a cube": (np.array([[["a"]]]), r"shape \(1, 1, 1\)"),
    "a pair and a text": ([("a", "b"), "c"], r"X\[1\] is 'c', expected a pair"),
    "a text and a pair": (["c", ("a", "b")], r"X\[1\] is \('a', 'b'\), expected a text"),
    "a triple": ([("a", "b", "c")], r"X\[0\] is .*expected a pair"),
    "half a character": (["\ud800"], "half of a surrogate pair"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_a_text_is_refused(case: str) -> None:
    value, message = WRONG[case]
    with pytest.raises(UserError, match=message) as caught:
        to_examples(value)
    assert isinstance(caught.value, ValueError)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(), st.booleans(), st.text()), min_size=8, max_size=12, unique_by=lambda row: row[0]))
def test_texts_survive_the_files_of_a_run(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, bool, str]]
) -> None:
    pairs = [(text, pair) for text, _, pair in rows]
    labels = [True, False, True, False, *(label for _, label, _ in rows[4:])]
    try:
        handed = hand_over(pairs, labels, (pairs[:1], labels[:1]), 0.1, 0)
    except InputError as error:
        assert "surrogate" in str(error)
        return
    read = read_texts(section(handed, tmp_path_factory.mktemp("run")))
    assert [(example.text, example.pair) for example in read.splits["train"]] == pairs
    assert read.classes == ("false", "true")
    assert [read.classes[example.label] == "true" for example in read.splits["train"]] == labels
    assert [(example.text, example.pair) for example in read.splits["dev"]] == pairs[:1] and "test" not in read.splits


def section(handed: Any, run: Path) -> TextsSection:
    return TextsSection(hold_out=False, allow_empty=True, **handed.write(run))


def test_held_out_rows_leave_the_training_rows(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(40)]
    handed = hand_over(texts, ["a", "b"] * 20, None, 0.25, seed=3)
    train, dev = ({example.text for example in part} for part in (handed.train, handed.dev))
    assert not train & dev and train | dev == set(texts)
    assert [sum(example.label == place for example in handed.dev) for place in (0, 1)] == [5, 5]
    assert handed.note == "dev (10) taken from the 40 training rows, the same share of every class, with seed 3."
    assert handed.dev != hand_over(texts, ["a", "b"] * 20, None, 0.25, seed=4).dev
    with pytest.raises(UserError, match="texts of another fit"):
        (handed.write(tmp_path), handed.write(tmp_path))


LABELS = {
    "words": (["b", "a"], ("a", "b")),
    "numbers": ([10, 9], ("9", "10")),
    "numbers of numpy": (np.array([1.0, -1.0]), ("-1", "1")),
    "truth": ([True, False], ("false", "true")),
    "words that differ in spaces": ([" a", "a"], ("' a'", "'a'")),
    "an empty word": (["", "a"], ("''", "'a'")),
    "spellings of true": (["True", "true"], ("'True'", "'true'")),
    "spellings of one": (["1", "1.0"], ("'1'", "'1.0'")),
}


@pytest.mark.parametrize("case", LABELS)
def test_every_class_has_a_word_of_its_own(case: str) -> None:
    labels, words = LABELS[case]
    assert class_words(np.unique(labels)) == words
    assert [label_word(word) for word in words] == list(words)  # a file keeps them apart


@pytest.mark.parametrize(
    ("words", "classes"),
    [
        (["0", "1"], [0, 1]),
        (["false", "true"], [False, True]),
        (["01", "1"], ["01", "1"]),
        (["1", "two"], ["1", "two"]),
    ],
)
def test_labels_of_a_file(words: list[str], classes: list[object]) -> None:
    assert word_classes(words).tolist() == classes


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no labels": ({"y": None}, "requires y to be passed, but the target y is None"),
    "another length": ({"y": ["a"]}, "X has 4 texts and y 1 labels"),
    "one class": ({"y": ["a"] * 4}, "y has one class only, .*'a'"),
    "measurements": ({"y": [0.1, 0.2, 0.3, 0.4]}, "Unknown label type"),
    "a missing label": ({"y": [1.0, 0.0, float("nan"), 1.0]}, r"y\[2\] is missing, expected a label"),
    "NaN": ({"y": np.array([1.0, 0.0, float("nan"), 1.0])}, "NaN"),
    "None among words": ({"y": pandas.Series(["a", None, "b", "a"])}, r"y\[1\] is missing, expected a label"),
    "NA": ({"y": pandas.Series(["a", "b", None, "a"], dtype="string")}, r"y\[2\] is missing, expected a label"),
    "a share of all": ({"share": 1.0}, "dev_share: expected a number between 0 and 1, got 1.0"),
    "a share in words": ({"share": "half"}, "dev_share: expected a number"),
    "too few": ({"X": ["a", "b"], "y": [0, 1]}, "too few different texts"),
    "one text": ({"X": ["a"] * 4}, "too few different texts"),
    "validation without labels": ({"validation": ["a"]}, r"expected a pair \(X, y\)"),
    "validation with another class": ({"validation": (["a"], ["c"])}, "the class .*'c'.*, which y has not"),
    "validation of another length": (
        {"validation": (["a"], ["a", "b"])},
        "validation X has 1 texts and validation y 2",
    ),
    "validation with pairs": ({"validation": ([("a", "b")], ["a"])}, "one has pairs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_learned_is_refused(case: str) -> None:
    changes, message = REFUSED[case]
    values: dict[str, Any] = {"X": list("wxyz"), "y": ["a", "b", "a", "b"], "validation": None, "share": 0.25}
    with pytest.raises(ValueError, match=message):
        hand_over(**(values | changes), seed=0)
