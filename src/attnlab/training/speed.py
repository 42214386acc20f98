"""How fast a model trains, measured apart from its run: a few steps of a copy of it.

A run's own clock also counts what other programs take from it. Here a single thread on a CPU is timed by the
processor's own count of what it did for this process; with several threads or a GPU there is only the clock on
the wall.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from torch import nn

from attnlab.base.randomness import random_untouched
from attnlab.data.batching import Batches
from attnlab.training.callbacks import Callback, RunLength, StepReport
from attnlab.training.loop import Environment, Learner, Plan, Trainer
from attnlab.training.objectives import Objective
from attnlab.training.optimizers import make_optimizer
from attnlab.training.schedules import Schedule
from attnlab.training.setup import make_accelerator
from attnlab.training.snapshot import TrainState

if TYPE_CHECKING:
    from attnlab.config.job import JobConfig

WARM_UP, TIMED = 3, 12  # steps


@dataclass(frozen=True)
class Pace:
    """The seconds and the tokens of some steps."""

    seconds: list[float]
    tokens: list[int]

    @property
    def seconds_a_step(self) -> float:
        return median(self.seconds)

    @property
    def tokens_a_second(self) -> float:
        return median(tokens / max(1e-9, seconds) for tokens, seconds in zip(self.tokens, self.seconds, strict=True))


class Stopwatch(Callback):
    """Notes the time and the tokens of each step."""

    def __init__(self, alone: bool) -> None:
        self.clock = time.process_time if alone else time.perf_counter
        self.seconds: list[float] = []
        self.tokens: list[int] = []

    def on_start(self, state: TrainState, outlook: RunLength) -> None:
        self.last = self.clock()

    def on_step(self, state: TrainState, report: StepReport) -> None:
        now = self.clock()
        self.seconds.append(now - self.last)
        self.tokens.append(report.tokens)
        self.last = now


def measure_pace(model: nn.Module, objective: Objective, batches: Batches, config: JobConfig) -> Pace:
    """Train a copy for a few steps; the machine's settings must be resolved. Compiling is not counted."""
    steps = WARM_UP + TIMED
    settings = config.training.model_copy(update={"steps": steps, "epochs": None, "evaluate_every": "0 steps"})
    watch = Stopwatch(alone=config.machine.device == "cpu" and config.machine.threads == 1)
    trial = copy.deepcopy(model)
    with random_untouched():
        Trainer(
            Learner(trial, objective, batches),
            Plan(
                make_optimizer(trial, config.optimizer),
                Schedule(config.schedule, steps),
                settings,
                config.optimizer.clip,
            ),
            Environment(make_accelerator(config.machine), callbacks=[watch], compile=config.machine.compile == "on"),
        ).fit()
    return Pace(watch.seconds[WARM_UP:], watch.tokens[WARM_UP:])
