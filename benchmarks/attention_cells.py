"""What `attention.py` measures: sides, and one cell per side and length."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Side:
    """One of the compared layers, and the powers of T it promises in time and memory; None: no promise."""

    name: str
    time: float | None
    memory: float | None
    peer: bool = False


@dataclass
class Cell:
    """One side at one length: one sample of both passes per round, and the peak of both together."""

    side: Side
    length: int
    skipped: str = ""
    """Why it was not measured."""
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
    """One entry per side, with its cells."""
    sides: dict[Side, list[dict[str, Any]]] = {}
    for cell in cells:
        entry: dict[str, Any] = {"length": cell.length}
        if cell.skipped:
            entry["skipped"] = cell.skipped
        else:
            entry["megabytes"] = round(cell.megabytes, 3)
            entry |= {name: [float(f"{s:.4g}") for s in getattr(cell, name)] for name in ("forward", "backward")}
        sides.setdefault(cell.side, []).append(entry)
    return [{**vars(side), "cells": entries} for side, entries in sides.items()]


def from_json(entries: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """The cells of a `results.json`, to draw and tabulate again."""
    return [
        Cell(Side(**{name: value for name, value in entry.items() if name != "cells"}), **cell)
        for entry in entries
        for cell in entry["cells"]
    ]
