"""results.json: every number of a comparison's report, and each seed's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.experiments.compare.results import Results, Row
from attnlab.experiments.compare.subjects import subject_of
from attnlab.report.numbers import plain, write_json


def write_results(root: Path, results: Results) -> None:
    reference = results.reference
    found = {
        "reference": reference.label if reference else None,
        "seeds": results.config.compare.seeds,
        "ranked": results.ranked,
        "ranked_by": results.measure.name,
        "variants": [_plain_row(row, results) for row in results.ordered],
        **subject_of(results.config).more(results),
        "config": results.config.model_dump(mode="json"),
        "data": results.data,
        **{name: results.record[name] for name in ("command", "started", "machine", "versions", "git")},
    }
    write_json(root / "results.json", found)


def _plain_row(row: Row, results: Results) -> dict[str, Any]:
    difference = results.difference(row) if row.comparable else None
    return {
        "label": row.label,
        "settings": {".".join(key): value for key, value in row.variant.settings.items()},
        "parameters": row.parameters,
        "steps": row.steps,
        "failures": row.failures,
        "difference": plain(difference) if difference else None,
        **subject_of(results.config).plain(row, results),
    }
