"""Labelled texts in splits: what every reader of this package gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base.files import sha256
from attnlab.data.tasks.columns import Columns

SPLITS = ("train", "dev", "test")


class Example(NamedTuple):
    text: str
    label: int
    """The place of its class in `Labelled.classes`."""
    pair: str | None = None
    """The second text of a pair: a question's passage, a premise's hypothesis."""


@dataclass(frozen=True)
class Labelled:
    name: str
    classes: tuple[str, ...]
    splits: Mapping[str, list[Example]]
    files: Mapping[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was decided or changed while reading, a sentence each: to be said once and recorded."""
    columns: Columns | None = None
    """Where texts and labels stand in the files; None: there are no columns."""

    @property
    def paired(self) -> bool:
        return any(example.pair is not None for examples in self.splits.values() for example in examples[:1])

    def counts(self, split: str) -> list[int]:
        """How many examples each class has in a split, in the order of `classes`."""
        found = Counter(example.label for example in self.splits[split])
        return [found[label] for label in range(len(self.classes))]

    def weights(self) -> list[float]:
        """n / (k·n_c) over the training split: every class weighs the same in sum; 0 for a class never seen."""
        counts = self.counts("train")
        return [sum(counts) / (len(counts) * count) if count else 0.0 for count in counts]

    def facts(self) -> dict[str, Any]:
        """What a run should record about its data."""
        return {
            "data": self.name,
            "classes": list(self.classes),
            "examples": {split: len(examples) for split, examples in self.splits.items()},
            "files": {split: {"path": str(path), "sha256": sha256(path)} for split, path in self.files.items()},
            "notes": list(self.notes),
            "columns": self.columns._asdict() if self.columns else None,
        }
