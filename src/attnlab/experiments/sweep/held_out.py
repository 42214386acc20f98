"""The test split: left alone by every trial, where the job can be told so, and scored for the winner alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnlab.config import leaves
from attnlab.jobs.registry import KINDS, config_of
from attnlab.runs import read_record

SCORE_TEST = ("data", "score_test")
Scorer = Callable[[Path], dict[str, float]]


def _scorer(job: str) -> Scorer | None:
    """How a run that has not looked at test is scored there: `score_test(run)` of a job that can withhold it."""
    found: Scorer | None = getattr(KINDS[job].job(), "score_test", None)
    return found if SCORE_TEST in leaves(config_of(job)) else None


def withheld(job: str) -> dict[str, Any]:
    """The setting that keeps a trial away from the test split, if the job has one."""
    return {".".join(SCORE_TEST): False} if _scorer(job) else {}


def scores_on_test(job: str, run: Path) -> dict[str, float]:
    """The test measures of one finished run."""
    scorer = _scorer(job)
    found = scorer(run) if scorer else read_record(run).get("results", {})
    names = [measure.name for measure in config_of(job).headlines if measure.split == "test"]
    return {name: float(found[name]) for name in names if name in found}
