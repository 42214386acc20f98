"""One worker of a sweep: it takes trials from the queue and runs them until none is left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import optuna

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.base.interrupts import Stopped, StopRequest
from attnlab.config.measures import ranking
from attnlab.experiments.sweep.held_out import withheld
from attnlab.experiments.sweep.queue import Claim, Queue, Unit
from attnlab.experiments.sweep.space import job_config
from attnlab.experiments.sweep.store import StoreFailed
from attnlab.jobs.registry import KINDS, config_of
from attnlab.jobs.several import reason_of, seed_key
from attnlab.jobs.stages import keep_weights, run_stage
from attnlab.runs import read_record, series
from attnlab.stats.intervals import Mean
from attnlab.training.callbacks import Callback, RunLength
from attnlab.training.snapshot import TrainState

POLL = 0.5  # seconds between two looks at what others do


class Hopeless(Stopped):
    """The pruner has seen enough of this run."""


class Watch(Callback):
    """Reports the dev metric of every evaluation to the trial, and ends a run that the pruner gives up."""

    def __init__(
        self, trial: optuna.Trial, name: str, metrics: Path, told: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.trial, self.name, self.metrics, self.told = trial, name, metrics, told

    def on_start(self, state: TrainState, outlook: RunLength) -> None:
        self.steps = outlook.steps
        self.looks = len(series(self.metrics, "dev", self.name)[0])  # those before the checkpoint it goes on from

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        if self.name not in values:
            return
        self.looks += 1
        with self.told():
            self.trial.report(values[self.name], self.looks)
            hopeless = state.step < self.steps and self.trial.should_prune()
        if hopeless:
            raise Hopeless(f"pruned at step {state.step} of {self.steps}: {self.name} {values[self.name]:.4g}")


class Worker:
    def __init__(self, queue: Queue, stop: StopRequest) -> None:
        self.queue, self.stop = queue, stop
        self.root, self.sweep = queue.root, queue.sweep
        self.measure = ranking(config_of(self.sweep.job).headlines)
        self.deadline = time.monotonic() + (self.sweep.seconds or math.inf)
        self.done = 0

    def work(self) -> None:
        """Until nothing waits and nobody is at work, or the time is used up."""
        while time.monotonic() < self.deadline:
            self.stop.check()
            claim = self.queue.claim()
            if claim is not None:
                self._run(claim)
            elif self.queue.busy():
                time.sleep(POLL)  # a colleague may still die, and what it has come back
            else:
                return

    def _run(self, claim: Claim) -> None:
        unit = claim.unit
        self.done += 1
        try:
            scores = [self._score(claim, unit, seed) for seed in unit.seeds]
        except Hopeless as end:
            console.say(f"{unit.label}: {end}.")
            claim.prune(str(end))
        except (Stopped, KeyboardInterrupt):
            claim.give_back()
            raise
        except StoreFailed:
            claim.let_go()
            raise
        except Exception as failure:
            console.warn(f"{unit.label}: {reason_of(failure)}")
            claim.fail(reason_of(failure))
        else:
            claim.complete(Mean(tuple(scores)).mean)

    def _score(self, claim: Claim, unit: Unit, seed: int) -> float:
        """What the run of one seed scores on dev; it is begun, gone on with, or read when it is done."""
        path, job = unit.path(self.root, seed), self.sweep.job
        settings = unit.settings | {".".join(seed_key(job)): seed} | withheld(job)
        config = job_config(self.queue.config, settings)
        name = self.measure.name.removeprefix("dev_")
        # Of several seeds in one trial the first decides whether it is hopeless: a pruner sees one curve a trial.
        watch = Watch(claim.trial, name, path / "metrics.jsonl", self.queue.told)
        watched = (watch,) if seed == unit.seeds[0] else ()
        again = f"attnlab sweep --run {self.root} --resume"
        run_stage(job, config, path, f"trial {unit.number}: {unit.label}, seed {seed}", again, watched)
        keep_weights(path)
        value: Any = read_record(path).get("results", {}).get(self.measure.name)
        if value is None or not math.isfinite(value):
            raise RunFailed(f"{path} has no {self.measure.title} to choose by: does the job have dev data?")
        return float(value)


def in_stages(job: str) -> bool:
    """Whether a job is a chain of runs: then nothing reports what a pruner could judge."""
    return hasattr(KINDS[job].job(), "run")
