"""Means over seeds, formatted for tables and for JSON files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.files import write_text
from attnlab.stats.intervals import Mean


def plus_minus(mean: Mean, form: str = ".3f") -> str:
    """1.234 ± 0.004, or the number alone for a single run."""
    if not mean.count:
        return "not measured"
    return f"{mean.mean:{form}}" + (f" ± {mean.half_width:{form.lstrip('+')}}" if mean.half_width is not None else "")


def plain(mean: Mean, by_seed: Mapping[int, float] | None = None) -> dict[str, Any]:
    """A mean as plain data for a JSON file."""
    values: dict[str, Any] = {"mean": mean.mean, "interval": mean.interval, "runs": mean.count}
    return values | ({"by_seed": dict(by_seed)} if by_seed else {})


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """A JSON file of numbers; JSON has no NaN and no infinity, they become null."""
    write_text(path, json.dumps(_finite(values), indent=1, ensure_ascii=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
