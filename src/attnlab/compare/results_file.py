"""results.json: every number of a comparison's report, and each seed's own."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from attnlab.compare.results import Results, Row
from attnlab.compare.subjects import subject_of
from attnlab.compare.words import plain
from attnlab.runs.files import write_text


def write_results(root: Path, results: Results) -> None:
    reference = results.reference
    found = {
        "reference": reference.label if reference else None,
        "seeds": results.config.compare.seeds,
        "ranked": results.ranked,
        "ranked_by": results.measure.name,
        "variants": [_plain_row(row, results) for row in results.ordered],
        "config": results.config.model_dump(mode="json"),
        "data": results.data,
        **{name: results.record[name] for name in ("command", "started", "machine", "versions", "git")},
    }
    write_text(root / "results.json", json.dumps(_finite(found), indent=1, ensure_ascii=False) + "\n")


def _plain_row(row: Row, results: Results) -> dict[str, Any]:
    difference = results.difference(row) if row.comparable else None
    return {
        "label": row.label,
        "settings": {".".join(key): value for key, value in row.variant.settings.items()},
        "parameters": row.parameters, "steps": row.steps, "failures": row.failures,
        "difference": plain(difference) if difference else None,
        **subject_of(results.config).plain(row, results),
    }  # fmt: skip


def _finite(value: Any) -> Any:
    """JSON knows no infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
