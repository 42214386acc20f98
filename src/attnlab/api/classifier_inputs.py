"""Texts and labels handed over from Python, as the examples that the engine knows, and as files in the run folder.

    inputs/train.jsonl, inputs/dev.jsonl    {"text": "...", "pair": "...", "label": "..."} per line

Labels of any type become words in these files, as in every run; `Classifier` turns predictions back into the labels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.data.tasks.labelled import LabelledText, label_word
from attnlab.data.tasks.prediction_inputs import NO_LABEL
from attnlab.data.tasks.splits import split_by_class
from attnlab.runs.folder import INPUTS


class InputError(UserError, ValueError):
    """A value handed over from Python is wrong; scikit-learn expects a ValueError."""


@dataclass(frozen=True)
class Handed:
    """Texts with their labels, in two splits."""

    classes: np.ndarray  # (K,), sorted
    words: tuple[str, ...]
    """The name of each class in the run."""
    train: list[LabelledText]
    dev: list[LabelledText]
    note: str
    """Where dev is from."""

    @property
    def paired(self) -> bool:
        return self.train[0].pair is not None

    def write(self, run: Path) -> dict[str, str | None]:
        """Write the texts into a run folder; returns the settings that read them from there."""
        folder = Path(os.path.abspath(run)) / INPUTS
        try:
            folder.mkdir()  # fails if another fit has taken the folder
        except FileExistsError:
            raise InputError(f"{run} holds the texts of another fit: choose another folder.") from None
        for split, examples in (("train", self.train), ("dev", self.dev)):
            write_text(folder / f"{split}.jsonl", "".join(f"{self._line(example)}\n" for example in examples))
        columns = {"text": "text", "pair": "pair" if self.paired else None, "label": "label"}
        return {"task": str(folder / "train.jsonl"), "dev": str(folder / "dev.jsonl"), **columns}

    def _line(self, example: LabelledText) -> str:
        pair = {} if example.pair is None else {"pair": example.pair}
        row = {"text": example.text, **pair, "label": self.words[example.label]}
        return json.dumps(row, ensure_ascii=False)


def is_file(given: object) -> bool:
    """Whether X names a file rather than being the texts."""
    return isinstance(given, str | os.PathLike)


def hand_over(X: object, y: object, validation: object, share: object, seed: int) -> Handed:
    """Check texts and labels; without `validation`, a share of every class becomes dev."""
    texts, labels = to_examples(X), to_labels(y)
    must_have_one_length(texts, labels, "X", "y")
    classes, places = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"y has one class only, {classes[0]!r}: a classifier needs two classes or more.")
    train = [text._replace(label=int(place)) for text, place in zip(texts, places, strict=True)]
    if validation is not None:
        dev, note = _validation(validation, classes, train[0]), "dev is the validation set that was given."
    elif isinstance(share, int | float | np.number) and not isinstance(share, bool) and 0 < share < 1:
        splits, note = split_by_class(train, ["dev"], seed, float(share))
        train, dev = splits["train"], splits["dev"]
    else:
        raise InputError(f"dev_share: expected a number between 0 and 1, got {share!r}.")
    if not dev or not train:
        raise InputError(
            "X has too few different texts to hold out some for dev: give two or more per class, or validation=(X, y)."
        )
    return Handed(classes, class_words(classes), train, dev, note)


def _validation(given: object, classes: np.ndarray, like: LabelledText) -> list[LabelledText]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError("validation: expected a pair (X, y) of texts and labels.")
    texts, labels = to_examples(given[0], "validation X"), to_labels(given[1], "validation y")
    must_have_one_length(texts, labels, "validation X", "validation y")
    if (texts[0].pair is None) != (like.pair is None):
        raise InputError("validation X and X differ: one has pairs of texts, the other single texts.")
    if len(strange := np.setdiff1d(labels, classes)):
        raise InputError(f"validation y has the class {strange[0]!r}, which y has not.")
    return [
        text._replace(label=int(place)) for text, place in zip(texts, np.searchsorted(classes, labels), strict=True)
    ]


def to_examples(given: object, name: str = "X") -> list[LabelledText]:
    """A list, an array or a Series of texts; of pairs of texts too, or two columns of a DataFrame."""
    rows = _rows(given, name)
    if not rows:
        raise InputError(f"{name} is empty, 0 samples: give at least one text.")
    paired = isinstance(rows[0], list | tuple | np.ndarray)
    examples = []
    for place, row in enumerate(rows):
        where = f"{name}[{place}]"
        if not paired:
            examples.append(LabelledText(_text(row, where), NO_LABEL))
        elif not isinstance(row, list | tuple | np.ndarray) or len(row) != 2:
            raise InputError(f"{where} is {row!r:.40}, expected a pair of texts.")
        else:
            examples.append(LabelledText(_text(row[0], f"{where}[0]"), NO_LABEL, _text(row[1], f"{where}[1]")))
    return examples


def _rows(given: Any, name: str) -> list[Any]:
    if hasattr(given, "to_numpy"):  # a Series or a DataFrame
        given = given.to_numpy()
    elif hasattr(given, "__array__"):
        given = np.asarray(given)
    if isinstance(given, np.ndarray):
        if given.ndim not in (1, 2) or (given.ndim == 2 and given.shape[1] not in (1, 2)):
            raise InputError(
                f"{name} has the shape {given.shape}, expected (N,) texts, or (N, 2) for pairs: "
                "choose the columns that hold texts."
            )
        return list(given.ravel()) if given.ndim == 1 or given.shape[1] == 1 else given.tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InputError(
            f"{name} is {'a text' if isinstance(given, str) else f'of type {type(given).__name__}'}, "
            'expected a list, an array or a Series of texts, such as ["Dull."].'
        )
    return list(given)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where} is {'missing' if _is_missing(value) else f'{value!r:.40}'}, expected a text.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} has half of a surrogate pair: it is not a text that can be stored.") from None
    return str(value)  # not a scalar of numpy


def _is_missing(value: object) -> bool:
    """Whether it is how Python, numpy or pandas say that there is no value."""
    return not isinstance(value, str) and str(value) in ("None", "nan", "<NA>", "NaT")


def to_labels(given: Any, name: str = "y") -> np.ndarray:
    """(N,) labels of one type; what is not a class is refused by scikit-learn."""
    if given is None:
        raise InputError(
            f"Classifier requires {name} to be passed, but the target {name} is None: give the labels of the texts, "
            "or the path of a labelled file as X."
        )
    labels = given.to_numpy() if hasattr(given, "to_numpy") else given
    if isinstance(labels, list) or (isinstance(labels, np.ndarray) and labels.dtype.kind == "O"):
        for place, label in enumerate(labels):
            if _is_missing(label):
                raise InputError(f"{name}[{place}] is missing, expected a label.")
    labels = column_or_1d(labels, warn=True)
    check_classification_targets(labels)
    return np.asarray(labels)


def must_have_one_length(texts: Sequence[object], labels: Sequence[object] | np.ndarray, X: str, y: str) -> None:
    if len(texts) != len(labels):
        raise InputError(f"{X} has {len(texts):,} texts and {y} {len(labels):,} labels: expected one label per text.")


def class_words(classes: np.ndarray) -> tuple[str, ...]:
    """The name of each class: the label as a word, or as Python writes it where words would be empty or equal."""
    words = [label_word(label) for label in classes.tolist()]
    distinct = len({*words} - {None}) == len(words)
    return tuple(str(word) for word in words) if distinct else tuple(map(repr, classes.tolist()))


def word_classes(words: Sequence[str]) -> np.ndarray:
    """The labels of a file, (K,): whole numbers, true and false if all are such, otherwise the words themselves."""
    if set(words) <= {"false", "true"}:
        return np.array([word == "true" for word in words])
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        return np.array(words)
    return np.array(numbers if [*map(str, numbers)] == list(words) else words)
