"""What is worth knowing about labelled texts before a classifier is trained on them, one sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.near_duplicates import NearPair, near_duplicates
from attnlab.data.tasks.splits import same_text
from attnlab.stats.intervals import Proportion

COMMON = 0.8
"""A class with this share of the training examples makes accuracy a poor measure."""
RATIO = 10
"""So does a class with this many times the examples of another."""
FEW_TESTED = 200
MOST_COMPARED = 50_000
"""Texts that are compared: of more, as many drawn at random."""
SHOWN = 3
LONGEST = 60


def observe(data: LabelledSet) -> list[str]:
    """Rare classes, imbalance, small splits, texts that nearly repeat."""
    return [*_classes(data), *_sizes(data), *_repeated(data)]


def _classes(data: LabelledSet) -> Iterator[str]:
    counts = dict(zip(data.classes, data.counts("train"), strict=True))
    single = [name for name, count in counts.items() if count == 1]
    if single:
        have = "has" if len(single) == 1 else "have"
        yield f"{_some(single)} {have} a single training example: too few to learn from."
    for names in _same_words(data.classes):
        yield f"the classes {', '.join(map(repr, names))} differ in capitals or blanks only: they may be one."
    present = {name: count for name, count in counts.items() if count}
    common, rare = max(present, key=lambda name: present[name]), min(present, key=lambda name: present[name])
    share = present[common] / sum(present.values())
    if share >= COMMON or present[common] >= RATIO * present[rare]:
        other = present[rare] / sum(present.values())
        yield (
            f"classes are uneven: {common!r} is {share:.0%} of train, {rare!r} {other:.1%}; choose by macro-F1 "
            "(--choose-by macro_f1) if rare classes matter as much."
        )


def _same_words(classes: Sequence[str]) -> Iterator[list[str]]:
    spellings: dict[str, list[str]] = {}
    for name in classes:
        spellings.setdefault(" ".join(re.split(r"[\s_-]+", name.casefold())), []).append(name)
    return (names for names in spellings.values() if len(names) > 1)


def _sizes(data: LabelledSet) -> Iterator[str]:
    for split in ("dev", "test"):
        count = len(data.splits.get(split, ()))
        if 0 < count < FEW_TESTED:
            low, high = Proportion(round(0.8 * count), count).interval
            yield f"{split} has {count} rows: an accuracy of 80% on it is only known to be {low:.0%} to {high:.0%}."


def _repeated(data: LabelledSet) -> Iterator[str]:
    """Pairs within a split and across two; equal texts are counted elsewhere."""
    places = [(split, example) for split, examples in data.splits.items() for example in examples]
    if len(places) > MOST_COMPARED:
        chosen = np.sort(np.random.default_rng(0).choice(len(places), MOST_COMPARED, replace=False))
        yield f"texts that nearly repeat were looked for among {MOST_COMPARED:,} of the {len(places):,}."
        places = [places[place] for place in chosen]
    pairs = near_duplicates([" ".join(same_text(example)) for _, example in places])
    within: dict[str, list[NearPair]] = {}
    across: dict[tuple[str, str], list[NearPair]] = {}
    for pair in pairs:
        one, two = places[pair.first][0], places[pair.second][0]
        (within.setdefault(one, []) if one == two else across.setdefault((one, two), [])).append(pair)
    for split, found in within.items():
        yield f"{split}: {_texts(found)} nearly another one of it, such as {_both(places, found[0])}."
    for one, two in combinations(data.splits, 2):
        if found := across.get((one, two), []):
            yield (
                f"{two}: {_texts(found)} nearly one of {one}, so it is easier than new texts: "
                f"{_both(places, found[0])}."
            )


def _both(places: list[tuple[str, LabelledText]], pair: NearPair) -> str:
    one, two = (" ".join(places[place][1].text.split()) for place in (pair.first, pair.second))
    return f"{_short(one)!r} and {_short(two)!r}"


def _texts(found: list[NearPair]) -> str:
    return "1 text is" if len(found) == 1 else f"{len(found):,} texts are"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more classes" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
