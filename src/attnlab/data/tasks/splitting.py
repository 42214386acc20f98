"""A split made with a seed: every class in its proportion, and no text in two parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from attnlab.data.tasks.labelled import Example
from attnlab.data.tasks.repeats import same_text

SHARE = 0.1
Parting = Callable[[Sequence[Example], Sequence[str], int], tuple[dict[str, list[Example]], str]]
"""Examples, the names of the missing splits and a seed in; all splits, and a sentence that says how, out."""


def by_class(
    examples: Sequence[Example], missing: Sequence[str], seed: int, share: float = SHARE
) -> tuple[dict[str, list[Example]], str]:
    """A share of the training examples for each split that is missing."""
    splits = split_off(examples, dict.fromkeys(missing, share), seed)
    parts = " and ".join(f"{split} ({len(splits[split]):,})" for split in missing)
    return splits, f"{parts} taken from the {len(examples):,} training rows, class by class, with seed {seed}."


def split_off(examples: Sequence[Example], shares: Mapping[str, float], seed: int) -> dict[str, list[Example]]:
    """Parts of the given shares and "train", which keeps the rest; each in the order of the examples.

    Rows with the same text stay together, or a test part would hold texts of the training part. A class gives
    each part an example at least, if it has enough for all.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, example in enumerate(examples):
        groups.setdefault(same_text(example), []).append(place)
    classes: dict[int, list[list[int]]] = {}
    for group in groups.values():
        classes.setdefault(examples[group[0]].label, []).append(group)
    chosen: dict[str, list[int]] = {part: [] for part in ("train", *shares)}
    for label in sorted(classes):
        own = classes[label]
        count = sum(map(len, own))
        wanted = {part: max(round(share * count), 1) if len(own) > len(shares) else 0 for part, share in shares.items()}
        for place in np.random.default_rng([seed, label]).permutation(len(own)):
            part = next((part for part, open_places in wanted.items() if open_places > 0), "train")
            chosen[part] += own[place]
            if part != "train":
                wanted[part] -= len(own[place])
    return {part: [examples[place] for place in sorted(places)] for part, places in chosen.items()}
