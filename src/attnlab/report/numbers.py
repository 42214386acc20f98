"""Means over seeds, as a table and as a file show them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.files import write_text
from attnlab.stats.intervals import Mean


def plus_minus(mean: Mean, form: str = ".3f") -> str:
    """1.234 ± 0.004, or the bare number of a single run."""
    if not mean.count:
        return "not measured"
    return f"{mean.mean:{form}}" + (f" ± {mean.half_width:{form.lstrip('+')}}" if mean.half_width is not None else "")


def plain(mean: Mean, by_seed: Mapping[int, float] | None = None) -> dict[str, Any]:
    """A mean for a file."""
    found: dict[str, Any] = {"mean": mean.mean, "interval": mean.interval, "runs": mean.count}
    return found | ({"by_seed": dict(by_seed)} if by_seed else {})


def write_json(path: Path, found: Mapping[str, Any]) -> None:
    """A file of numbers: JSON knows no infinities, null stands for them."""
    write_text(path, json.dumps(_finite(found), indent=1, ensure_ascii=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
