"""Cross-validation: the rows of a file in K folds, each of which is the test split once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.base.errors import UserError
from attnlab.data.tasks.labelled import LabelledText
from attnlab.data.tasks.splits import SHARE, same_text, split_off


@dataclass(frozen=True)
class Fold:
    """A `Splitter` for one of the folds: it is the test split, dev is taken from the others."""

    count: int
    number: int
    """From 1."""

    def __call__(
        self, examples: Sequence[LabelledText], missing: Sequence[str], seed: int
    ) -> tuple[dict[str, list[LabelledText]], str]:
        if "dev" not in missing:
            raise UserError(
                "--folds takes dev and test from one file, so that every row is tested once: leave out --dev and "
                "--test, or --folds."
            )
        fold = fold_of(examples, self.count, seed)
        splits = split_off([e for e, place in zip(examples, fold, strict=True) if place != self.number], _DEV, seed)
        splits["test"] = [e for e, place in zip(examples, fold, strict=True) if place == self.number]
        note = (
            f"fold {self.number} of {self.count}: {len(splits['test']):,} of the {len(examples):,} rows are the test "
            f"split, {len(splits['dev']):,} of the others dev, with seed {seed}."
        )
        return splits, note


_DEV = {"dev": SHARE}


def fold_of(examples: Sequence[LabelledText], count: int, seed: int) -> list[int]:
    """The fold of each row, from 1: every class in its proportion, rows with the same text in one fold."""
    from sklearn.model_selection import StratifiedGroupKFold  # takes a second to import

    numbers: dict[tuple[str, str], int] = {}
    groups = [numbers.setdefault(same_text(example), len(numbers)) for example in examples]
    if len(numbers) < 2 * count:
        raise UserError(f"{len(numbers):,} different texts are too few for {count} folds: give fewer with --folds.")
    labels = [example.label for example in examples]
    # scikit-learn goes through the groups by their numbers, so their order is what the seed decides.
    numbered = np.random.default_rng(seed).permutation(len(numbers))[groups]
    folds = np.zeros(len(examples), int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer rows than folds is missing in some: data are as they are
        splitter = StratifiedGroupKFold(min(count, max(np.bincount(labels))))
        for number, (_, test) in enumerate(splitter.split(groups, labels, numbered), start=1):
            folds[test] = number
    if set(folds) != set(range(1, count + 1)):
        raise UserError(f"no class has {count} rows, one for each fold: give fewer with --folds.")
    return [int(fold) for fold in folds]
