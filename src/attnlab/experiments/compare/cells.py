"""The cells of a comparison: every variant with every seed, each a run of its own.

A variant is a set of settings that differ from what all share. Seeds are the outer loop: what is finished at any
time is whole rounds of all variants, and an hour in which the machine is busy falls on all of them alike.

Where a run is dear a choice may have fewer seeds than the others: `along_with: {examples=3200: {seeds: 2}}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError, unknown
from attnlab.config import find_setting, lay_over, split_list
from attnlab.config.recipe import Key
from attnlab.jobs.registry import config_of
from attnlab.jobs.several import folder_name, seed_key, unlike


@dataclass(frozen=True)
class Choice:
    """One value on an axis: how it is called, and the settings it stands for."""

    shown: str
    settings: Mapping[Key, Any]
    seeds: int | None = None


@dataclass(frozen=True)
class Variant:
    """One row of the comparison."""

    label: str
    folder: str
    settings: Mapping[Key, Any]
    choices: tuple[str, ...] = ()
    """What it is on each axis that has several."""
    seeds: int | None = None
    """How many it is run with, if that is fewer than the others have."""


@dataclass(frozen=True)
class Cell:
    """One variant with one seed."""

    variant: Variant
    seed: int

    def path(self, root: Path) -> Path:
        return root / "cells" / self.variant.folder / f"seed-{self.seed}"


def variants(config: Any) -> list[Variant]:
    """Every choice on an axis with every choice on the others; a label says only what varies."""
    from attnlab.experiments.compare.subjects import subject_of

    axes = _with_more(config, [*subject_of(config).axes(config), *_axes(config)])
    rows: list[Variant] = []
    for choices in product(*axes):
        varied = tuple(choice.shown for axis, choice in zip(axes, choices, strict=True) if len(axis) > 1)
        label = unlike(" + ".join(varied) or choices[0].shown, [row.label for row in rows])
        folder = folder_name(label, [row.folder for row in rows])
        settings = {key: value for choice in choices for key, value in choice.settings.items()}
        seeds = min((choice.seeds for choice in choices if choice.seeds is not None), default=None)
        rows.append(Variant(label, folder, settings, varied, seeds))
    return rows


def _axes(config: Any) -> list[list[Choice]]:
    """The axes any job has: named sets of settings, settings to vary, and one change at a time."""
    kind = config_of(config.compare.job)
    axes = [
        [Choice(called(name, value), {find_setting(kind, name): value}) for value in values]
        for name, values in config.compare.vary.items()
    ]
    if config.compare.arms:
        axes.insert(0, [Choice(name, own_settings(kind, own)) for name, own in config.compare.arms.items()])
    changes = [Choice("as it is", {})]
    for change in split_list(config.compare.changes):
        name, _, value = change.partition("=")
        changes.append(Choice(change, {find_setting(kind, name): value.strip()}))
    return [*axes, changes]


def called(name: str, value: Any) -> str:
    """A varied setting with a value, in a label."""
    return f"{name.rpartition('.')[2]}={value}"


def own_settings(kind: type[Any], own: Mapping[str, Any]) -> dict[Key, Any]:
    """The settings of one choice alone, found by their names."""
    return {find_setting(kind, name): value for name, value in own.items()}


def _with_more(config: Any, axes: list[list[Choice]]) -> list[list[Choice]]:
    """Each choice with the settings, and the number of seeds, that are to go along with it."""
    more, kind = config.compare.along_with, config_of(config.compare.job)
    known = [choice.shown for axis in axes for choice in axis]
    for name in more:
        if name not in known:
            raise UserError(f"along_with: {unknown('choice', name, known)}")
    return [[_and(choice, dict(more.get(choice.shown, {})), kind) for choice in axis] for axis in axes]


def _and(choice: Choice, own: dict[str, Any], kind: type[Any]) -> Choice:
    seeds = own.pop("seeds", None)
    return Choice(choice.shown, {**choice.settings, **own_settings(kind, own)}, seeds)


def seeds_of(config: Any, variant: Variant) -> range:
    """The seeds a variant is run with."""
    count: int = config.compare.seeds
    return range(count if variant.seeds is None else min(count, variant.seeds))


def cells(config: Any) -> Iterator[Cell]:
    rows = variants(config)
    for seed in range(config.compare.seeds):
        for variant in rows:
            if seed in seeds_of(config, variant):
                yield Cell(variant, seed)


def job_config(config: Any, cell: Cell, known: Mapping[str, Any]) -> Any:
    """The configuration of one run: all that the comparison was told, and what makes this cell.

    `known` is what was decided once for the variant.
    """
    from attnlab.experiments.compare.subjects import subject_of

    job, subject = config.compare.job, subject_of(config)
    settings = subject.settings(config, cell.variant) | {seed_key(job): cell.seed}
    return lay_over(config_of(job), subject.values(config, known), settings)
