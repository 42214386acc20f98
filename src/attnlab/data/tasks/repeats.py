"""Texts that stand in a set more than once: in two splits, or in one with labels that contradict."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

from attnlab.data.tasks.labelled import Example, Labelled


class Repeats(NamedTuple):
    across: Mapping[tuple[str, str], list[Example]]
    """For two splits, the examples of the second whose text stands in the first."""
    contradicting: Mapping[str, list[list[Example]]]
    """For a split, the groups of examples with one text and several labels."""


def same_text(example: Example) -> tuple[str, str]:
    """What makes two examples the same: their words, whatever the case and the spaces."""
    return " ".join(example.text.casefold().split()), " ".join((example.pair or "").casefold().split())


def find_repeats(labelled: Labelled) -> Repeats:
    groups: dict[str, dict[tuple[str, str], list[Example]]] = {}
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
