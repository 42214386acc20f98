"""A budget in seconds as a number of steps, from the measured speed of a variant.

The number is fixed before the first run of a variant and the same for all its seeds: a schedule needs to know
where it ends, and a run that is taken up again must end where it would have.
"""

from __future__ import annotations

from statistics import median

import torch

from attnlab.data.batching import Batches, BatchPlan
from attnlab.jobs.configs import LanguageConfig
from attnlab.jobs.language import LanguageJob
from attnlab.training.callbacks import Callback, StepReport
from attnlab.training.loop import Trainer
from attnlab.training.optimizers import make_optimizer
from attnlab.training.schedules import Schedule
from attnlab.training.setup import make_accelerator
from attnlab.training.snapshot import TrainState, seed_everything

WARM_UP, TIMED = 3, 12  # steps


class Stopwatch(Callback):
    """Remembers how long each step took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.seconds.append(report.seconds)


def seconds_a_step(config: LanguageConfig) -> float:
    """The median over a few steps of a model that is thrown away."""
    steps = WARM_UP + TIMED
    config = config.model_copy(deep=True)
    config.training.steps, config.training.evaluate_every = steps, "0 steps"
    torch.set_num_threads(int(config.machine.threads))
    seed_everything(config.training.seed)
    parts, watch = LanguageJob(config).build(config.machine.device), Stopwatch()
    plan = BatchPlan(parts.data.lengths, config.batch.size, config.batch.tokens)  # type: ignore[arg-type]
    Trainer(
        parts.model, parts.objective, Batches(parts.data, plan, config.batch.accumulate),
        make_optimizer(parts.model, config.optimizer), Schedule(config.schedule, steps), config.training,
        make_accelerator(config.machine), clip=config.optimizer.clip, callbacks=[watch],
    ).fit()  # fmt: skip
    return median(watch.seconds[WARM_UP:])


def steps_in(seconds: float, config: LanguageConfig) -> int:
    return max(1, round(seconds / seconds_a_step(config)))
