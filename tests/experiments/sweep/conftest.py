"""A job without a model, whose scores are known beforehand: what is tested is the search."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from attnlab.base.errors import RunFailed
from attnlab.config import MachineSection, Section, check, option
from attnlab.experiments.config import sweep_of
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import KINDS, Kind
from attnlab.runs import RunFolder, read_record
from attnlab.stats.intervals import ACCURACIES

MACHINE = {"device": "cpu", "precision": "fp32", "threads": 1}


class HillSection(Section):
    x: float = option(0.0, "Where on the hill; best at 1 on dev, at 3 on test; 13 fails.")
    y: int = option(0, "Another coordinate.", ge=0)
    shape: Literal["flat", "steep"] = option("flat", "Of the hill.")
    gate: bool = option(False, "Wait in every run until the sweep's folder has a file 'open'.")
    nap: float = option(0.0, "Seconds a run takes.", ge=0)


class HillData(Section):
    score_test: bool = option(True, "Score the test split as well.")


class ToyConfig(Section):
    seed: int = option(0, "Seed.", ge=0)
    hill: HillSection = HillSection()
    machine: MachineSection = MachineSection()


class CoyConfig(ToyConfig):
    data: HillData = HillData()


class ToyJob:
    kind: ClassVar[str] = "toy"
    prunable: ClassVar[bool] = False

    def __init__(self, config: Any) -> None:
        self.config = config

    def run(self, options: RunOptions) -> Path:
        assert options.path is not None
        hill, told = self.config.hill, self.config.model_dump(mode="json")
        run = RunFolder.reopen(options.path) if options.resume else RunFolder.create(options.path, "toy", told, 0)
        try:
            _note(run.path, "begun")
            time.sleep(hill.nap)
            while hill.gate and not (run.path.parents[2] / "open").exists():
                time.sleep(0.02)
            if hill.x == 13 and not (run.path.parents[2] / "mended").exists():
                run.set_status("failed", "unlucky")
                raise RunFailed("13 is unlucky")
            scores = {"dev_accuracy": on(hill, 1.0, self.config.seed)}
            if getattr(getattr(self.config, "data", None), "score_test", True):
                scores["test_accuracy"] = on(hill, 3.0, self.config.seed)
            run.update_record(
                results=scores, training={"seconds": 1.5, "step": 1}, data={"examples": {"dev": 100, "test": 50}}
            )
            _note(run.path, "done")
            run.set_status("finished")
        finally:
            run.close()
        return options.path

    def estimate(self) -> None:
        return None

    @classmethod
    def score_test(cls, run: Path) -> dict[str, float]:
        return dict(read_record(run)["results"])

    @classmethod
    def load(cls, run: Path) -> Any:
        raise NotImplementedError


class CoyJob(ToyJob):
    """One that can leave the test split alone, and score it later."""

    @classmethod
    def score_test(cls, run: Path) -> dict[str, float]:
        _note(run, "tested")
        return {"test_accuracy": 0.42, "test_loss": 1.0}


def on(hill: HillSection, top: float, seed: int) -> float:
    return 0.9 - 0.1 * abs(hill.x - top) - 0.01 * hill.y + 0.001 * seed


def _note(run: Path, what: str) -> None:
    with (run / f"{what}.txt").open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    toy = Kind("toy", "a toy", "", ToyConfig, lambda: ToyJob, ACCURACIES)
    coy = Kind("coy", "a toy", "", CoyConfig, lambda: CoyJob, ACCURACIES, {("data", "score_test"): False})
    for kind in (toy, coy):
        monkeypatch.setitem(KINDS, kind.name, kind)
    yield


@pytest.fixture
def toy() -> Callable[..., Any]:
    """toy(vary=..., ...): a sweep over the hill."""

    def make(job: str = "toy", hill: dict[str, Any] | None = None, **sweep: Any) -> Any:
        return check(sweep_of(job), {"sweep": {"job": job} | sweep, "hill": hill or {}, "machine": MACHINE})

    return make


@pytest.fixture
def drawn() -> None:
    """Asked for by tests that look at the report: drawing takes longer than all the rest."""


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(
            "attnlab.experiments.sweep.write_sweep_page", lambda root, *_: (root / "report.html").touch()
        )
        monkeypatch.setattr("attnlab.experiments.sweep.importances", lambda _: {})
