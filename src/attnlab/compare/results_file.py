"""results.json: every number of a comparison's report, and each seed's own."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.compare.results import Results, Row
from attnlab.jobs.language import perplexity
from attnlab.runs.files import write_text
from attnlab.stats import Mean

MEASURES = (
    "train_loss", "dev_loss", "sample_loss", "prefix_loss", "tokens_per_second", "step_memory_mib", "seconds",
)  # fmt: skip


def write_results(root: Path, results: Results) -> None:
    reference = results.reference
    found = {
        "reference": reference.label if reference else None,
        "seeds": results.config.compare.seeds,
        "ranked": results.ranked,
        "variants": [_plain_row(row, results) for row in results.ordered],
        "config": results.config.model_dump(mode="json"),
        "data": results.data,
        **{name: results.record[name] for name in ("command", "started", "machine", "versions", "git")},
    }
    write_text(root / "results.json", json.dumps(_finite(found), indent=1, ensure_ascii=False) + "\n")


def _plain_row(row: Row, results: Results) -> dict[str, Any]:
    difference = results.difference(row) if row.comparable else None
    return {
        "label": row.label, "attention": row.variant.attention, "positions": row.variant.positions,
        "parameters": row.parameters, "steps": row.steps, "sees_future": row.sees_future, "failures": row.failures,
        **{name: _plain(row.mean(name), row.by_seed(name)) for name in MEASURES if row.by_seed(name)},
        **{name.replace("loss", "perplexity"): perplexity(row.mean(name).mean)
           for name in MEASURES if name.endswith("_loss") and row.by_seed(name)},
        "difference": _plain(difference) if difference else None,
        "prefix_difference": _plain(honest) if (honest := results.difference(row, "prefix_loss")) else None,
        "prefix_gap": _plain(row.gap) if row.gap.count else None,
        "curve": {"steps": row.curve.steps, "seconds": [round(s, 2) for s in row.curve.seconds],
                  "losses": [_plain(mean) for mean in row.curve.losses]},
        "lengths": {str(length): _plain(row.at_length(length)) if row.at_length(length).count
                    else next(iter(row.lengths.values()))[length]
                    for length in results.config.measures.lengths if row.lengths},
    }  # fmt: skip


def _plain(mean: Mean, by_seed: Mapping[int, float] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"mean": mean.mean, "interval": mean.interval, "runs": mean.count}
    return found | ({"by_seed": dict(by_seed)} if by_seed else {})


def _finite(value: Any) -> Any:
    """JSON knows no infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value
