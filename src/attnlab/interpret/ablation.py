"""Which parts of a model matter: what changes without them, the ranking of the heads, and a curve of many removed.

    effect(part) = measure without the part − measure with it, example by example

so intervals are over paired examples. An effect of one head says nothing of many: others can do its work. The curve
therefore removes more and more heads, in the order of their effects on one half of the examples, and is measured on the
other half, beside random orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.interpret.measured import Measured
from attnlab.interpret.removal import ModelPart, Remover, name_of, parts_of
from attnlab.stats.intervals import Mean, Proportion

POINTS = 24  # of a curve: a model with more heads loses several per point
RANDOM_ORDERS = 5


@dataclass(frozen=True)
class Effect:
    """What removing a part changes, by measure: the mean over examples of after − before."""

    part: ModelPart
    changes: dict[str, Mean]
    by_example: Tensor
    """(N,), the change of the measure that ranks."""


@dataclass(frozen=True)
class Ablation:
    run: str
    source: str
    how: str
    examples: int
    main: str
    better: str
    """Whether "higher" or "lower" is better for the measure that ranks."""
    before: dict[str, Mean]
    effects: list[Effect]
    """The most harmful removal first."""
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "source": self.source,
            "how": self.how,
            "examples": self.examples,
            "ranked_by": self.main,
            "before": {name: plain(mean) for name, mean in self.before.items()},
            "effects": [
                {"part": str(effect.part)} | {name: plain(mean) for name, mean in effect.changes.items()}
                for effect in self.effects
            ],
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        return f"Ablation({self.run!r}, {len(self.effects)} parts, {self.examples} examples)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import ablation_html

        return ablation_html(self)


def plain(mean: Mean) -> dict[str, Any]:
    return {"mean": mean.mean, "interval": mean.interval, "examples": mean.count}


def ablate(measured: Measured, parts: Sequence[ModelPart] | None = None, how: str = "mean", seed: int = 0) -> Ablation:
    """Remove each part alone; all heads if none are named."""
    parts = parts_of(measured.model, "head") if parts is None else list(parts)
    remover = Remover(measured, how, seed)
    for part in parts:
        name_of(remover.anatomy, part)  # raises for what is not there, before the first pass
    before = measured.scores()
    effects = []
    for part in parts:
        after = remover.scores([part])
        changes = {name: Mean(tuple((after[name] - before[name]).tolist())) for name in before}
        effects.append(Effect(part, changes, after[measured.main] - before[measured.main]))
    effects.sort(key=lambda effect: _harm(effect.changes[measured.main].mean, measured.better), reverse=True)
    means = {name: Mean(tuple(values.tolist())) for name, values in before.items()}
    return Ablation(
        measured.name,
        measured.source,
        how,
        measured.count,
        measured.main,
        measured.better,
        means,
        effects,
        measured.notes,
    )


def _harm(change: float, better: str) -> float:
    return -change if better == "higher" else change


@dataclass(frozen=True)
class CurvePoint:
    """So many heads removed, measured on the half of the examples that did not choose the order."""

    removed: int
    value: float
    interval: tuple[float, float] | None
    random: Mean
    """Over random orders."""


@dataclass(frozen=True)
class Curve:
    run: str
    how: str
    measure: str
    chosen_on: int
    """Examples that chose the order."""
    measured_on: int
    order: list[ModelPart]
    points: list[CurvePoint]

    def as_dict(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "how": self.how,
            "chosen_on": self.chosen_on,
            "measured_on": self.measured_on,
            "order": [str(part) for part in self.order],
            "points": [
                {"removed": p.removed, "value": p.value, "interval": p.interval, "random": p.random.mean}
                | {"random_interval": p.random.interval, "random_orders": p.random.count}
                for p in self.points
            ],
        }

    def __repr__(self) -> str:
        return f"Curve({self.run!r}, up to {len(self.order)} heads, {self.measured_on} examples)"

    def _repr_html_(self) -> str:
        from attnlab.interpret.notebook import curve_html

        return curve_html(self)


def removal_curve(
    measured: Measured, ablation: Ablation, orders: int = RANDOM_ORDERS, points: int = POINTS, seed: int = 0
) -> Curve:
    """The measure against heads removed, the most harmful first; `ablation` has the effects of all of them."""
    if measured.count < 4:
        raise UserError(f"a curve needs two halves of the examples: expected at least 4, got {measured.count}.")
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(measured.count, generator=generator)
    choosing, held_out = shuffled.chunk(2)
    harm = {e.part: _harm(float(e.by_example[choosing].mean()), measured.better) for e in ablation.effects}
    order = sorted(harm, key=lambda part: (-harm[part], part))
    counts = sorted({round(n * len(order) / min(points, len(order))) for n in range(min(points, len(order)) + 1)})
    remover = Remover(measured, ablation.how, seed)

    def along(parts: Sequence[ModelPart]) -> list[Tensor]:
        return [remover.scores(parts[:n])[measured.shown][held_out] for n in counts]

    at_random = []
    for _ in range(orders):
        drawn = [sorted(order)[n] for n in torch.randperm(len(order), generator=generator)]
        at_random.append([float(values.mean()) for values in along(drawn)])
    result = []
    for n, (removed, values) in enumerate(zip(counts, along(order), strict=True)):
        interval = _interval(values, measured.shown)
        result.append(CurvePoint(removed, float(values.mean()), interval, Mean(tuple(row[n] for row in at_random))))
    return Curve(measured.name, ablation.how, measured.shown, len(choosing), len(held_out), order, result)


def _interval(values: Tensor, measure: str) -> tuple[float, float] | None:
    if measure == "accuracy":
        return Proportion(int(values.sum()), len(values)).interval
    return Mean(tuple(values.tolist())).interval
