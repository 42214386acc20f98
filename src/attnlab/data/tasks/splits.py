"""Splits made with a seed, every class in its proportion and no text in two of them, and texts that occur twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from attnlab.data.tasks.labelled import LabelledSet, LabelledText


class Repeats(NamedTuple):
    across: Mapping[tuple[str, str], list[LabelledText]]
    """For two splits, the examples of the second whose text is also in the first."""
    contradicting: Mapping[str, list[list[LabelledText]]]
    """For a split, the groups of examples with one text and several labels."""


def same_text(example: LabelledText) -> tuple[str, str]:
    """The key under which two examples count as the same text: their words, ignoring case and spaces."""
    return " ".join(example.text.casefold().split()), " ".join((example.pair or "").casefold().split())


def find_repeats(labelled: LabelledSet) -> Repeats:
    groups: dict[str, dict[tuple[str, str], list[LabelledText]]] = {}
    for split, examples in labelled.splits.items():
        groups[split] = {}
        for example in examples:
            groups[split].setdefault(same_text(example), []).append(example)
    across = {
        (one, two): [example for text, group in groups[two].items() if text in groups[one] for example in group]
        for one, two in combinations(groups, 2)
    }
    contradicting = {
        split: [group for group in found.values() if len({example.label for example in group}) > 1]
        for split, found in groups.items()
    }
    return Repeats(
        {splits: found for splits, found in across.items() if found},
        {split: found for split, found in contradicting.items() if found},
    )


SHARE = 0.1
Splitter = Callable[[Sequence[LabelledText], Sequence[str], int], tuple[dict[str, list[LabelledText]], str]]
"""From examples, the names of the missing splits and a seed to all splits and a sentence on how they were made."""


def split_by_class(
    examples: Sequence[LabelledText], missing: Sequence[str], seed: int, share: float = SHARE
) -> tuple[dict[str, list[LabelledText]], str]:
    """Take a share of the training examples for each missing split."""
    splits = split_off(examples, dict.fromkeys(missing, share), seed)
    parts = " and ".join(f"{split} ({len(splits[split]):,})" for split in missing)
    return (
        splits,
        f"{parts} taken from the {len(examples):,} training rows, the same share of every class, with seed {seed}.",
    )


def split_off(
    examples: Sequence[LabelledText], shares: Mapping[str, float], seed: int
) -> dict[str, list[LabelledText]]:
    """Splits of the given shares and "train", which keeps the rest; each in the order of the examples.

    Rows with the same text stay together, or the test split would contain training texts. A class gives
    each split at least one example, if it has enough for all.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, example in enumerate(examples):
        groups.setdefault(same_text(example), []).append(place)
    classes: dict[int, list[list[int]]] = {}
    for group in groups.values():
        classes.setdefault(examples[group[0]].label, []).append(group)
    chosen: dict[str, list[int]] = {part: [] for part in ("train", *shares)}
    for label in sorted(classes):
        members = classes[label]
        count = sum(map(len, members))
        remaining = {
            part: max(round(share * count), 1) if len(members) > len(shares) else 0 for part, share in shares.items()
        }
        for place in np.random.default_rng([seed, label]).permutation(len(members)):
            part = next((part for part, open_places in remaining.items() if open_places > 0), "train")
            chosen[part] += members[place]
            if part != "train":
                remaining[part] -= len(members[place])
    return {part: [examples[place] for place in sorted(places)] for part, places in chosen.items()}
