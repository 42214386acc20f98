"""The cells of a comparison: every variant with every seed, each a run of its own.

Seeds are the outer loop: what is finished at any time is whole rounds of all variants, and an hour in which
the machine is busy falls on all of them alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from attnlab.compare.config import DEFAULT_STEPS, CompareConfig
from attnlab.config import check, split_list
from attnlab.jobs.configs import LanguageConfig


@dataclass(frozen=True)
class Variant:
    """One row of the comparison."""

    label: str
    folder: str
    attention: str
    positions: str
    change: str = ""


@dataclass(frozen=True)
class Cell:
    """One variant with one seed."""

    variant: Variant
    seed: int

    def path(self, root: Path) -> Path:
        return root / "cells" / self.variant.folder / f"seed-{self.seed}"


def variants(config: CompareConfig) -> list[Variant]:
    """Every attention with every kind of positions and every change; a label says only what varies."""
    attentions, positions = split_list(config.compare.attention), split_list(config.compare.positions)
    changes = ["", *split_list(config.compare.changes)]
    rows: list[Variant] = []
    for attention, place, change in product(attentions, positions, changes):
        short = Path(attention).stem if attention.endswith(".py") else attention
        parts = [short] * (len(attentions) > 1 or len(positions) == len(changes) == 1)
        parts += [place] * (len(positions) > 1) + [change or "as it is"] * (len(changes) > 1)
        label = _unlike(" + ".join(parts), [row.label for row in rows])
        folder = _unlike(re.sub(r"[^\w.-]+", "-", label), [row.folder for row in rows])
        rows.append(Variant(label, folder, attention, place, change))
    return rows


def _unlike(name: str, taken: list[str]) -> str:
    """Two files of the same name in different folders are two variants."""
    return next(each for n in range(1, 10_000) if (each := name if n == 1 else f"{name}-{n}") not in taken)


def cells(config: CompareConfig) -> Iterator[Cell]:
    for seed in range(config.compare.seeds):
        for variant in variants(config):
            yield Cell(variant, seed)


def steps_of(config: CompareConfig) -> int:
    """The budget when it is counted in steps."""
    return config.budget.steps or DEFAULT_STEPS


def language_config(config: CompareConfig, cell: Cell, steps: int) -> LanguageConfig:
    """The configuration of one run: all that the comparison was told, and what makes this cell."""
    shared: dict[str, Any] = config.model_dump(exclude={"compare", "budget"})
    shared["model"] |= {"attention": cell.variant.attention, "positions": cell.variant.positions}
    if cell.variant.change:
        name, _, value = cell.variant.change.partition("=")
        shared["model"][name.strip().replace("-", "_")] = value.strip()
    every = f"{max(1, steps // config.budget.evaluations)} steps"
    shared["training"] = {
        "steps": steps, "seed": cell.seed, "evaluate_every": every, "save_every": every,
        "log_every": min(config.budget.log_every, steps),
    }  # fmt: skip
    return check(LanguageConfig, shared)
