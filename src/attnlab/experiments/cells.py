"""The cells of a comparison: every variant with every seed, each a run of its own.

A variant is a set of settings that differ from what all share. Seeds are the outer loop: what is finished at any time
is whole rounds of all variants, and an hour in which the machine is busy falls on all of them alike.

Where a run is expensive a choice may have fewer seeds than the others: `along_with: {examples=3200: {seeds: 2}}`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError, unknown
from attnlab.base.files import folder_name, unlike
from attnlab.config.classify import BASELINES, EMBEDDINGS, MAJORITY, TFIDF
from attnlab.config.recipe import Key, find_setting, value_of
from attnlab.config.sections import Section, split_list
from attnlab.experiments.config import CLASSIFIER_AXES, CompareConfig
from attnlab.jobs.registry import KINDS

MODEL: Key = ("model", "name")
ENCODER: Key = ("model", "encoder")
PLAIN: Mapping[Key, Any] = {
    ("tuning", "method"): "full",
    ("tuning", "adversarial"): 0.0,
    ("joint", "mlm"): None,
    ("model", "pooling"): "auto",
    ("model", "head"): "auto",
    ("training", "epochs"): None,
    ("training", "steps"): None,
}
"""Settings of a baseline, whatever the classifiers beside it share."""
ATTENTION, POSITIONS = ("model", "attention"), ("model", "positions")


@dataclass(frozen=True)
class Choice:
    """One value on an axis: its name in labels, and the settings it stands for."""

    name: str
    settings: Mapping[Key, Any]
    seeds: int | None = None


@dataclass(frozen=True)
class ComparedVariant:
    """One row of the comparison."""

    label: str
    folder: str
    settings: Mapping[Key, Any]
    choices: tuple[str, ...] = ()
    """Its choice on each axis that has several."""
    seeds: int | None = None
    """Its number of seeds, if fewer than the others have."""


@dataclass(frozen=True)
class Cell:
    """One variant with one seed."""

    variant: ComparedVariant
    seed: int

    def path(self, root: Path) -> Path:
        return root / "cells" / self.variant.folder / f"seed-{self.seed}"

    @property
    def label(self) -> str:
        return f"{self.variant.label}, seed {self.seed}"


def variants(config: CompareConfig) -> list[ComparedVariant]:
    """Every choice on an axis with every choice on the others; a label names only what varies."""
    axes = _with_settings_of_one(config, [*_axes_of_job(config), *_axes_of_any_job(config)])
    rows: list[ComparedVariant] = []
    for choices in product(*axes):
        varied = tuple(choice.name for axis, choice in zip(axes, choices, strict=True) if len(axis) > 1)
        label = unlike(" + ".join(varied) or choices[0].name, [row.label for row in rows])
        folder = folder_name(label, [row.folder for row in rows])
        settings = {key: value for choice in choices for key, value in choice.settings.items()}
        seeds = min((choice.seeds for choice in choices if choice.seeds is not None), default=None)
        rows.append(ComparedVariant(label, folder, settings, varied, seeds))
    return with_baselines(rows, axes, config) if config.compare.baselines else rows


def with_baselines(
    rows: list[ComparedVariant], axes: Sequence[Sequence[Choice]], config: CompareConfig
) -> list[ComparedVariant]:
    """The classifiers, and after them the baselines that are not among them, on each choice of rows and texts.

    The baselines read as much of a text as the first encoder does, whose vectors the last of them uses.
    """
    named = [str(row.settings.get(MODEL, config_model(config))) for row in rows]
    encoder = next((name for name in named if name not in BASELINES), None)
    reading: dict[Key, Any] = {ENCODER: encoder} if encoder else {}
    about_rows = [
        [
            Choice(choice.name, {k: v for k, v in choice.settings.items() if k[0] == "data"}, choice.seeds)
            for choice in axis
        ]
        for axis in axes
        if any(key[0] == "data" for choice in axis for key in choice.settings)
    ]
    missing = [
        Choice(name, {MODEL: name, **(reading if name != MAJORITY else {}), **PLAIN})
        for name in BASELINES
        if name not in named and (encoder or name != EMBEDDINGS)
    ]
    every = [
        replace(row, settings={**reading, **row.settings}) if name in (TFIDF, EMBEDDINGS) else row
        for row, name in zip(rows, named, strict=True)
    ]
    for choices in product(*about_rows, missing):
        varied = tuple(choice.name for axis, choice in zip(about_rows, choices, strict=False) if len(axis) > 1)
        label = unlike(" + ".join((*varied, choices[-1].name)), [row.label for row in every])
        settings = {key: value for choice in choices for key, value in choice.settings.items()}
        seeds = min((choice.seeds for choice in choices if choice.seeds is not None), default=None)
        folder = folder_name(label, [row.folder for row in every])
        every.append(ComparedVariant(label, folder, settings, (*varied, choices[-1].name), seeds))
    return every


def config_model(config: CompareConfig) -> str:
    """The model that all share, unless it varies."""
    return str(value_of(config, MODEL))


def _axes_of_job(config: CompareConfig) -> list[list[Choice]]:
    """What only some jobs have: kinds of attention and positions; models, methods and optimizers of classifiers."""
    section = config.compare
    if section.job == "language":
        names = split_list(section.attention)
        attention = [Choice(Path(name).stem if name.endswith(".py") else name, {ATTENTION: name}) for name in names]
        return [attention, [Choice(name, {POSITIONS: name}) for name in split_list(section.positions)]]
    named = {key: getattr(section, axis) for axis, key in CLASSIFIER_AXES.items()}
    return [[_classifier(key, *choice) for choice in choices.items()] for key, choices in named.items() if choices]


def _classifier(key: Key, name: str, settings: Mapping[str, Any]) -> Choice:
    """A name with its settings; a model's folder is named by its last part and stored as an absolute path."""
    folder = key == CLASSIFIER_AXES["models"] and os.path.isdir(os.path.expanduser(name))
    value = os.path.abspath(os.path.expanduser(name)) if folder else name
    named = settings_by_key(KINDS["classify"].config, settings)
    return Choice(Path(value).name if folder else name, {key: value, **named})


def _axes_of_any_job(config: CompareConfig) -> list[list[Choice]]:
    """Named sets of settings, settings to vary, and one change at a time."""
    section, kind = config.compare, KINDS[config.compare.job].config
    axes = [
        [Choice(value_label(name, value), {find_setting(kind, name): value}) for value in values]
        for name, values in section.vary.items()
    ]
    if section.arms:
        axes.insert(0, [Choice(name, settings_by_key(kind, settings)) for name, settings in section.arms.items()])
    changes = [Choice("as it is", {})]
    for change in split_list(section.changes):
        name, _, value = change.partition("=")
        changes.append(Choice(change, {find_setting(kind, name): value.strip()}))
    return [*axes, changes]


def value_label(name: str, value: Any) -> str:
    """A varied setting with a value, in a label."""
    own = isinstance(value, str) and value.endswith(".py")
    return f"{name.rpartition('.')[2]}={Path(value).stem if own else value}"


def settings_by_key(kind: type[Section], settings: Mapping[str, Any]) -> dict[Key, Any]:
    return {find_setting(kind, name): value for name, value in settings.items()}


def _with_settings_of_one(config: CompareConfig, axes: list[list[Choice]]) -> list[list[Choice]]:
    """Each choice with the settings, and the number of seeds, that `along_with` gives it alone."""
    extra, kind = config.compare.along_with, KINDS[config.compare.job].config
    names = [choice.name for axis in axes for choice in axis]
    for name in extra:
        if name not in names:
            raise UserError(f"along_with: {unknown('choice', name, names)}")

    def extended(choice: Choice) -> Choice:
        settings = dict(extra.get(choice.name, {}))
        seeds = settings.pop("seeds", None)
        return Choice(choice.name, {**choice.settings, **settings_by_key(kind, settings)}, seeds)

    return [[extended(choice) for choice in axis] for axis in axes]


def seeds_of(config: CompareConfig, variant: ComparedVariant) -> range:
    """The seeds a variant is run with."""
    count = config.compare.seeds
    return range(count if variant.seeds is None else min(count, variant.seeds))


def cells(config: CompareConfig) -> Iterator[Cell]:
    rows = variants(config)
    for seed in range(config.compare.seeds):
        for variant in rows:
            if seed in seeds_of(config, variant):
                yield Cell(variant, seed)
