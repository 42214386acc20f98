"""Labelled texts in splits, which every reader of this package returns, and labels as classes counted from 0."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base.errors import UserError
from attnlab.base.files import sha256
from attnlab.data.tasks.columns import Columns
from attnlab.data.tasks.tables import BadRow

_WHOLE = re.compile(r"-?\d+")


def label_word(value: Any) -> str | None:
    """A label as a word: 1, 1.0 and "1" are the same, so are true and "True"; None if it is not a label."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if not isinstance(value, str) or not value.strip():
        return None
    word = value.strip().removesuffix(".0") if re.fullmatch(r"\s*-?\d+\.0\s*", value) else value.strip()
    return word.lower() if word.lower() in ("true", "false") else word


def is_whole(word: str) -> bool:
    """Whether a label is a whole number."""
    return _WHOLE.fullmatch(word) is not None


def find_classes(words: Collection[str]) -> dict[str, int]:
    """The classes of a file's labels: numbers in numeric order, words in alphabetical order (false before true)."""
    numbers = all(_WHOLE.fullmatch(word) for word in words)
    return {word: place for place, word in enumerate(sorted(set(words), key=int if numbers else None))}


def named_classes(words: Collection[str], names: Sequence[str], where: str) -> dict[str, int]:
    """From labels to the indices of classes whose names are given: by name, or as numbers from 0 or from 1."""
    by_name = {name: place for place, name in enumerate(names)}
    if set(words) & by_name.keys() or not words:
        return by_name
    if set(words) <= {"false", "true"} and len(names) == 2:
        return {"false": 0, "true": 1}
    if not all(_WHOLE.fullmatch(word) for word in words):
        return by_name
    first = 0 if "0" in words else 1 if str(len(names)) in words else None
    if first is None:
        raise UserError(
            f"{where}: the labels {', '.join(sorted(set(words), key=int))} may number the {len(names)} classes from 0 "
            "or from 1: write the names into the file."
        )
    return {str(place + first): place for place in range(len(names))}


SPLITS = ("train", "dev", "test")


class LabelledText(NamedTuple):
    text: str
    label: int
    """The index of its class in `LabelledSet.classes`."""
    pair: str | None = None
    """The second text of a pair: a question's passage, a premise's hypothesis."""


@dataclass(frozen=True)
class LabelledSet:
    name: str
    classes: tuple[str, ...]
    splits: Mapping[str, list[LabelledText]]
    files: Mapping[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was decided or changed while reading, one sentence each: printed once and recorded."""
    columns: Columns | None = None
    """Which columns of the files hold texts and labels; None if there are no columns."""
    skipped: tuple[BadRow, ...] = ()
    """Rows of the files that could not be used and were left out."""

    @property
    def paired(self) -> bool:
        return any(example.pair is not None for examples in self.splits.values() for example in examples[:1])

    def counts(self, split: str) -> list[int]:
        """How many examples each class has in a split, in the order of `classes`."""
        found = Counter(example.label for example in self.splits[split])
        return [found[label] for label in range(len(self.classes))]

    def weights(self) -> list[float]:
        """n / (k·n_c) over the training split, so all classes have the same total weight; 0 without examples."""
        counts = self.counts("train")
        return [sum(counts) / (len(counts) * count) if count else 0.0 for count in counts]

    def facts(self) -> dict[str, Any]:
        """What a run records about its data."""
        return {
            "data": self.name,
            "classes": list(self.classes),
            "examples": {split: len(examples) for split, examples in self.splits.items()},
            "files": {split: {"path": str(path), "sha256": sha256(path)} for split, path in self.files.items()},
            "notes": list(self.notes),
            "columns": self.columns._asdict() if self.columns else None,
            "skipped": len(self.skipped),
        }
