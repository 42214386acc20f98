"""A summary of labelled texts to read before training on them, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.splits import find_repeats

QUANTILES = {"least": 0.0, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95, "most": 1.0}
SHOWN = 3


def summarise(data: LabelledSet) -> dict[str, Any]:
    """Sizes, balance, lengths, repeats and a few examples; names of classes instead of numbers."""
    repeats = find_repeats(data)
    return {
        "name": data.name,
        "paired": data.paired,
        "notes": list(data.notes),
        "counts": {split: dict(zip(data.classes, data.counts(split), strict=True)) for split in data.splits},
        "weights": dict(zip(data.classes, data.weights(), strict=True)),
        "lengths": {split: lengths(examples) for split, examples in data.splits.items()},
        "across": {
            f"{two} in {one}": {"count": len(found), "examples": _shown(data, found)}
            for (one, two), found in repeats.across.items()
        },
        "contradicting": {
            split: {"count": len(groups), "examples": _shown(data, [example for group in groups for example in group])}
            for split, groups in repeats.contradicting.items()
        },
        "examples": _shown(data, _first_of_each_class(data)),
    }


def lengths(examples: Sequence[LabelledText]) -> dict[str, dict[str, int]]:
    """Quantiles of characters and words, of a text and its pair together."""
    both = [f"{example.text} {example.pair}" if example.pair else example.text for example in examples]
    counts = {"characters": [len(text) for text in both], "words": [len(text.split()) for text in both]}
    return {
        unit: {name: int(np.quantile(count, share, method="nearest")) for name, share in QUANTILES.items()}
        for unit, count in counts.items()
    }


def _first_of_each_class(data: LabelledSet) -> list[LabelledText]:
    first: dict[int, LabelledText] = {}
    for example in data.splits["train"]:
        first.setdefault(example.label, example)
    return [first[label] for label in sorted(first)]


def _shown(data: LabelledSet, examples: Sequence[LabelledText]) -> list[dict[str, str]]:
    return [
        {"text": example.text, "label": data.classes[example.label]} | ({"pair": example.pair} if example.pair else {})
        for example in examples[: max(SHOWN, len(data.classes))]
    ]
