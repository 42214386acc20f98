"""The texts of a classification run: the task or files it names, cut down to what it asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from attnlab.base.errors import UserError
from attnlab.config import split_list
from attnlab.config.classify import TextsSection
from attnlab.data.tasks.catalog import load_labelled
from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.tables import ColumnRequest


def read_texts(section: TextsSection) -> LabelledSet:
    """What the section names, with all its examples."""
    request = ColumnRequest(
        section.text, section.pair, section.label, tuple(split_list(section.classes)), section.header
    )
    dev, test, folder = (Path(path) if path else None for path in (section.dev, section.test, section.data_folder))
    return load_labelled(section.task, request, dev, test, section.split_seed, folder, section.hold_out)


def wanted(data: LabelledSet, section: TextsSection, seed: int, overfit: int | None) -> LabelledSet:
    """The examples that are asked for; to learn a few by heart, these are dev as well and there is no test."""
    if overfit is not None:
        few = draw(data.splits["train"], overfit, seed)
        return replace(data, splits={"train": few, "dev": few})
    splits = dict(data.splits)
    if section.examples is not None:
        splits["train"] = draw(splits["train"], section.examples, seed)
    if not section.score_test:
        splits.pop("test", None)
    return replace(data, splits=splits)


def draw(examples: list[LabelledText], count: int, seed: int) -> list[LabelledText]:
    """`count` of the examples, every class in its proportion (largest remainders), in their order."""
    if count > len(examples):
        raise UserError(f"{count:,} training examples are asked for, and there are {len(examples):,}.")
    generator = np.random.default_rng(seed)
    labels = np.array([example.label for example in examples])
    found, sizes = np.unique(labels, return_counts=True)
    exact = sizes * count / len(examples)
    shares = np.floor(exact).astype(int)
    for place in np.argsort(shares - exact, kind="stable")[: count - shares.sum()]:
        shares[place] += 1
    chosen = [
        generator.permutation(np.flatnonzero(labels == label))[:share]
        for label, share in zip(found, shares, strict=True)
    ]
    return [examples[place] for place in np.sort(np.concatenate(chosen))]
