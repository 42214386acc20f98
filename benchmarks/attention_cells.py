"""What `attention.py` measures: sides, and a cell for each side and length."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Side:
    """One of those compared, and the powers of T it promises in time and memory; None: nothing."""

    name: str
    time: float | None
    memory: float | None
    peer: bool = False


@dataclass
class Cell:
    """One side at one length: a sample of both passes for each round, and the peak of both together."""

    side: Side
    length: int
    skipped: str = ""
    """Why there is nothing here."""
    megabytes: float = 0.0
    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)

    @property
    def samples(self) -> list[float]:
        return [a + b for a, b in zip(self.forward, self.backward, strict=True)]

    @property
    def seconds(self) -> float:
        return statistics.median(self.samples)


def to_json(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """One entry a side, its cells inside."""
    sides: dict[Side, list[dict[str, Any]]] = {}
    for cell in cells:
        told: dict[str, Any] = {"length": cell.length}
        if cell.skipped:
            told["skipped"] = cell.skipped
        else:
            told["megabytes"] = round(cell.megabytes, 3)
            told |= {name: [float(f"{s:.4g}") for s in getattr(cell, name)] for name in ("forward", "backward")}
        sides.setdefault(cell.side, []).append(told)
    return [{**vars(side), "cells": told} for side, told in sides.items()]


def from_json(entries: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """The cells of a `results.json`, to draw and tabulate again."""
    return [
        Cell(Side(**{name: value for name, value in entry.items() if name != "cells"}), **told)
        for entry in entries
        for told in entry["cells"]
    ]
