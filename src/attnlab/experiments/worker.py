"""One worker of a sweep: it takes trials from the queue and runs them until none is left."""

from __future__ import annotations

import math
import time
from pathlib import Path

import optuna

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.base.interrupts import Stopped, StopRequest
from attnlab.experiments.experiment import SWEEP
from attnlab.experiments.queue import Claim, Queue
from attnlab.experiments.space import job_config
from attnlab.experiments.store import StoreFailed
from attnlab.jobs.registry import KINDS
from attnlab.jobs.subruns import reason_of
from attnlab.runs import read_record, series
from attnlab.stats.intervals import Mean
from attnlab.training.callbacks import Callback, RunLength, TrainState

POLL = 0.5  # seconds between two looks at the queue


class Pruned(Stopped):
    """The pruner ended this run."""


class PruningWatch(Callback):
    """Reports the dev metric of every evaluation to the trial, and ends a run that the pruner gives up."""

    def __init__(self, trial: optuna.Trial, name: str, metrics: Path, queue: Queue) -> None:
        self.trial, self.name, self.metrics, self.queue = trial, name, metrics, queue

    def on_start(self, state: TrainState, length: RunLength) -> None:
        self.steps = length.steps
        self.looks = len(series(self.metrics, "dev", self.name)[0])  # those before the checkpoint it resumes from

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        if self.name not in values:
            return
        self.looks += 1
        with self.queue.errors_explained():
            self.trial.report(values[self.name], self.looks)
            prune = state.step < self.steps and self.trial.should_prune()
        if prune:
            raise Pruned(f"pruned at step {state.step} of {self.steps}: {self.name} {values[self.name]:.4g}")


class Worker:
    def __init__(self, queue: Queue, stop: StopRequest) -> None:
        self.queue, self.stop = queue, stop
        self.kind = KINDS[queue.sweep.job]
        self.deadline = time.monotonic() + (queue.sweep.seconds or math.inf)
        self.done = 0

    def work(self) -> None:
        """Until nothing waits and no other worker runs, or the time is used up."""
        while time.monotonic() < self.deadline:
            self.stop.check()
            claim = self.queue.claim()
            if claim is not None:
                self._run(claim)
            elif self.queue.busy():
                time.sleep(POLL)  # another worker may still be lost, and its trial requeued
            else:
                return

    def _run(self, claim: Claim) -> None:
        label = claim.queued.label
        self.done += 1
        try:
            scores = [self._score(claim, seed) for seed in claim.queued.seeds]
        except Pruned as end:
            console.say(f"{label}: {end}.")
            claim.prune(str(end))
        except (Stopped, KeyboardInterrupt):
            claim.requeue()
            raise
        except StoreFailed:
            claim.release()
            raise
        except Exception as failure:
            console.warn(f"{label}: {reason_of(failure)}")
            claim.fail(reason_of(failure))
        else:
            claim.complete(Mean(tuple(scores)).mean)

    def _score(self, claim: Claim, seed: int) -> float:
        """The dev score of the run of one seed; it is started, resumed, or read when it is finished."""
        queued, measure = claim.queued, self.kind.chooses_by
        path = queued.path(self.queue.root, seed)
        fixed = {".".join(key): value for key, value in {self.kind.seed: seed, **self.kind.without_test}.items()}
        config = job_config(self.queue.config, queued.settings | fixed)
        # Of several seeds in one trial the first decides whether it is pruned: a pruner sees one curve per trial.
        name = measure.name.removeprefix("dev_")
        watch = PruningWatch(claim.trial, name, path / "metrics.jsonl", self.queue)
        callbacks = (watch,) if seed == queued.seeds[0] else ()
        label = f"trial {queued.number}: {queued.label}, seed {seed}"
        SWEEP.train(self.queue.root, self.kind.name, config, path, label, callbacks)
        value = read_record(path).get("results", {}).get(measure.name)
        if value is None or not math.isfinite(value):
            raise RunFailed(f"{path} has no {measure.title} to choose by: does the job have dev data?")
        return float(value)
