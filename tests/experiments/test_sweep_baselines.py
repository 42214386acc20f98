"""The winner of a sweep of classifiers stands beside the baselines, tested on the same rows; the trials do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.tiny_models import tiny_model

from attnlab.config import check
from attnlab.experiments.config import sweep_of
from attnlab.experiments.experiment import SWEEP
from attnlab.experiments.sweep import resume_sweep, run_sweep, sweep_results
from attnlab.experiments.sweep_baselines import baseline_rows, first_words
from attnlab.runs import read_config
from attnlab.runs.predictions import read_predictions

pytest.importorskip("optuna")


def test_the_winner_is_put_beside_the_baselines_on_its_rows(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "sweep": {"vary": "optimizer.lr=1e-7,1e-6;data.max_tokens=8"},
        "data": {"task": "sentiment", "examples": 60},
        "model": {"name": str(tiny_model(tmp_path / "model"))},
        "training": {"epochs": 1},
        "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
    }
    root = run_sweep(check(sweep_of("classify"), values), tmp_path / "sweep")
    rows, (results, tested) = baseline_rows(root), sweep_results(root)
    assert [row.label for row in rows] == ["majority", "tfidf", "embeddings"]
    assert not any((root / "trials").rglob("baselines"))
    best = results.best
    assert best is not None
    winner = read_predictions(best.paths[0] / "evaluations" / "test")
    for row in rows:
        other = read_predictions(row.paths[0])
        assert winner is not None and other is not None and other.examples == winner.examples
    tfidf = read_config(rows[1].paths[0])
    assert (tfidf["data"]["max_tokens"], tfidf["data"]["examples"]) == (8, 60)
    said, page = first_words(root, results, tested), (root / "report.html").read_text()
    assert said.startswith("The winner") and "tfidf" in said and said in page and "only second right" in page
    before = (rows[1].paths[0] / "run.json").stat().st_mtime_ns
    resume_sweep(root, SWEEP.saved(root))
    assert (rows[1].paths[0] / "run.json").stat().st_mtime_ns == before  # finished is finished
