"""The cells of a comparison: every variant with every seed, each a run of its own.

A variant is a set of settings that differ from what all share. Seeds are the outer loop: what is finished at any
time is whole rounds of all variants, and an hour in which the machine is busy falls on all of them alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from attnlab.config import find_setting, lay_over, split_list
from attnlab.config.recipe import Key
from attnlab.jobs.kinds import config_of
from attnlab.jobs.several import folder_name, seed_key, unlike


@dataclass(frozen=True)
class Choice:
    """One value on an axis: how it is called, and the settings it stands for."""

    shown: str
    settings: Mapping[Key, Any]


@dataclass(frozen=True)
class Variant:
    """One row of the comparison."""

    label: str
    folder: str
    settings: Mapping[Key, Any]


@dataclass(frozen=True)
class Cell:
    """One variant with one seed."""

    variant: Variant
    seed: int

    def path(self, root: Path) -> Path:
        return root / "cells" / self.variant.folder / f"seed-{self.seed}"


def variants(config: Any) -> list[Variant]:
    """Every choice on an axis with every choice on the others; a label says only what varies."""
    from attnlab.compare.subjects import subject_of

    axes = [*subject_of(config).axes(config), *_axes(config)]
    rows: list[Variant] = []
    for choices in product(*axes):
        varied = [choice.shown for axis, choice in zip(axes, choices, strict=True) if len(axis) > 1]
        label = unlike(" + ".join(varied) or choices[0].shown, [row.label for row in rows])
        folder = folder_name(label, [row.folder for row in rows])
        settings = {key: value for choice in choices for key, value in choice.settings.items()}
        rows.append(Variant(label, folder, settings))
    return rows


def _axes(config: Any) -> list[list[Choice]]:
    """The axes any job has: settings to vary, and one change at a time."""
    kind = config_of(config.compare.job)
    axes = [
        [Choice(f"{name.rpartition('.')[2]}={value}", {find_setting(kind, name): value}) for value in values]
        for name, values in config.compare.vary.items()
    ]
    changes = [Choice("as it is", {})]
    for change in split_list(config.compare.changes):
        name, _, value = change.partition("=")
        changes.append(Choice(change, {find_setting(kind, name): value.strip()}))
    return [*axes, changes]


def cells(config: Any) -> Iterator[Cell]:
    for seed in range(config.compare.seeds):
        for variant in variants(config):
            yield Cell(variant, seed)


def job_config(config: Any, cell: Cell, known: Mapping[str, Any]) -> Any:
    """The configuration of one run: all that the comparison was told, and what makes this cell.

    `known` is what was decided once for the variant.
    """
    from attnlab.compare.subjects import subject_of

    job, subject = config.compare.job, subject_of(config)
    settings = subject.settings(config, cell.variant) | {seed_key(job): cell.seed}
    return lay_over(config_of(job), subject.values(config, known), settings)
