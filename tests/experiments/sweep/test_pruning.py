"""A hopeless run is ended early, cleanly, and its folder says so; those with hope are left alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.experiments.config import sweep_of
from attnlab.experiments.experiment import SWEEP
from attnlab.experiments.queue import Queue
from attnlab.experiments.sweep import check_sweep, resume_sweep, run_sweep, study_of, sweep_results
from attnlab.jobs.registry import KINDS
from attnlab.runs import read_status, series
from attnlab.runs.listing import summarise

MACHINE = {"device": "cpu", "precision": "fp32", "threads": 1}
GOOD, HOPELESS = ("0.02", "0.018", "0.016", "0.014"), "1e-6"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    draw = random.Random(0)
    (tmp_path / "text.txt").write_text(" ".join(draw.choice(("to", "be", "or")) for _ in range(400)), encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.mark.parametrize("prune", ["median", "halving"])
def test_a_hopeless_run_ends_early_and_says_so(
    prune: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.report.page.write_run_page", lambda path, passages: path)
    told = {
        "sweep": {"job": "language", "vary": f"optimizer.lr={','.join([*GOOD, HOPELESS])}", "prune": prune},
        "data": {"corpus": str(text)},
        "batch": {"size": 4},
        "machine": MACHINE,
        "model": {"layers": 1, "heads": 1, "width": 8, "context": 16},
        "measures": {"dev_blocks": 4, "prefix_blocks": 0},
        "training": {"steps": 10, "evaluate_every": "2 steps", "save_every": "0"},
    }
    path = run_sweep(check(sweep_of("language"), told), tmp_path / "sweep")
    results, _ = sweep_results(path)
    cut = results.rows[-1]
    assert cut.state == "pruned" and cut.settings == {"optimizer.lr": 1e-6} and cut not in results.finished
    assert results.best is not None and results.ordered[-1].state == "pruned"

    run = path / cut.folder / "seed-0"
    status, looks = read_status(run), series(run / "metrics.jsonl", "dev", "loss")
    assert status["state"] == "interrupted" and status["reason"].startswith("pruned at step 4 of 10: loss ")
    assert looks[0] == [2, 4] and summarise(run).step == 4
    assert [folder.name for folder in (run / "checkpoints").glob("step-*")] == ["step-00000004"]
    trials = Queue(path, SWEEP.saved(path), study_of(path)).study.trials
    assert trials[-1].intermediate_values == {1: looks[1][0], 2: looks[1][1]}
    kept = trials[0]
    assert set(kept.intermediate_values) == {1, 2, 3, 4, 5} and kept.value is not None

    before = (run / "run.json").stat().st_mtime_ns
    grown = SWEEP.saved(path)
    grown.sweep.seeds = 2
    resume_sweep(path, grown)
    assert (run / "run.json").stat().st_mtime_ns == before and not (run.parent / "seed-1").exists()


def test_every_job_that_is_one_training_can_be_pruned() -> None:
    """Classification, the default, among them; a chain of runs cannot."""
    assert {name for name, kind in KINDS.items() if kind.measures and kind.job().prunable} == {
        "finetune",
        "language",
        "classify",
    }
    for job in ("classify", "finetune"):
        check_sweep(check(sweep_of(job), {"sweep": {"job": job, "vary": "optimizer.lr=1e-4,1e-3", "prune": "median"}}))


def test_there_must_be_something_to_judge_by() -> None:
    told = {"sweep": {"job": "finetune", "vary": "lr=1,2", "prune": "median"}, "training": {"evaluate_every": 0}}
    with pytest.raises(UserError, match="evaluate_every is 0"):
        run_sweep(check(sweep_of("finetune"), told), Path("never"))
