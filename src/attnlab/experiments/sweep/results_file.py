"""results.json: every number of a sweep's report. Test measures stand in it for the winner alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.experiments.sweep.results import Results, Row, Tested
from attnlab.report.numbers import plain, write_json


def write_results(root: Path, results: Results, tested: Tested | None, importance: Mapping[str, float]) -> None:
    best = results.best
    write_json(
        root / "results.json",
        {
            "job": results.config.sweep.job,
            "search": results.config.sweep.search,
            "chosen_by": results.measure.name,
            "best": _plain_row(best) if best else None,
            "test": _plain_test(results, tested) if tested else None,
            "edges": {name: edge for name, _, edge in results.edges},
            "alike": [row.settings for row in results.alike],
            "importance": dict(importance),
            "seconds": sum(row.seconds for row in results.rows),
            "cells": [_plain_row(row) for row in results.ordered],
            "config": results.config.model_dump(mode="json"),
            "data": results.example.get("data", {}),
            **{name: results.record[name] for name in ("command", "started", "machine", "versions", "git")},
        },
    )


def _plain_row(row: Row) -> dict[str, Any]:
    return {
        "settings": row.settings,
        "state": row.state,
        "trial": row.number,
        "folder": f"trials/{row.folder}",
        "dev": plain(row.mean, row.scores) if row.scores else None,
        "seconds": row.seconds,
        "reasons": row.reasons,
    }


def _plain_test(results: Results, tested: Tested) -> dict[str, Any]:
    found: dict[str, Any] = {"folder": f"trials/{tested.folder}", "reason": tested.reason}
    for measure in results.on_test:
        mean = tested.mean(measure)
        if mean.count:
            share = results.over_examples(mean.mean, measure)
            by_seed = {seed: scores[measure.name] for seed, scores in tested.scores.items() if measure.name in scores}
            found[measure.name] = plain(mean, by_seed) | {"over_examples": share.interval if share else None}
    return found
