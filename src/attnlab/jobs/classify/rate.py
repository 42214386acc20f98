"""--lr auto: the rate with the lowest loss on dev after a short training at each of several (a range test).

Every try starts from the same weights and reads the same batches; the run that follows is as if there had been none.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.base.randomness import random_untouched, seed_everything
from attnlab.config.classify import ClassifyConfig
from attnlab.config.sections import ScheduleSection
from attnlab.config.usual import FEW_BATCH, usual_rate
from attnlab.data.batching import Batches, BatchPlan, Examples
from attnlab.models.pretrained.classifier import Subset, predict
from attnlab.stats.scores import Scores
from attnlab.training.loop import Environment, Learner, Plan, Trainer
from attnlab.training.objectives import Objective
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.setup import make_accelerator

FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Of the usual rate."""
STEPS, WARMUP = 40, 4
SCORED = 256
"""Rows of dev on which a try is judged, at most."""


@dataclass(frozen=True)
class FoundRate:
    rate: float
    losses: Mapping[float, float]
    """On dev, by rate; infinite where the training diverged."""
    steps: int
    rows: int

    def sentence(self) -> str:
        shown = ", ".join(f"{rate:g}: {loss:.3f}" for rate, loss in self.losses.items())
        return (
            f"learning rate auto: {self.rate:g}, the lowest loss on {self.rows:,} rows of dev after {self.steps} steps "
            f"({shown})."
        )


def find_rate(
    model: nn.Module,
    objective: Objective,
    examples: Mapping[str, Examples],
    labels: Tensor,
    config: ClassifyConfig,
    device: str,
) -> FoundRate:
    """`labels` are those of dev."""
    usual = usual_rate(config.tuning.method, config.optimizer.name, sum(p.numel() for p in model.parameters()))
    every = list(range(0, len(labels), -(-len(labels) // SCORED)))
    dev = Subset(examples["dev"], every)
    size = config.batch.size if isinstance(config.batch.size, int) else FEW_BATCH
    steps = min(STEPS, 2 * -(-len(examples["train"].lengths) // size))
    batches = Batches(examples["train"], BatchPlan(examples["train"].lengths, size, seed=config.training.seed))
    losses: dict[float, float] = {}
    for factor in FACTORS:
        rate = float(f"{usual * factor:.2g}")
        with console.working(f"learning rate auto: trying {rate:g} ..."), random_untouched():
            seed_everything(config.training.seed)
            trial = copy.deepcopy(model)
            _train(trial, objective, batches, config, rate, steps)
            loss = Scores(predict(trial, dev, device), labels[every]).loss
        losses[rate] = loss if math.isfinite(loss) else math.inf
    best = min(losses, key=losses.__getitem__)
    if not math.isfinite(losses[best]):
        raise RunFailed("--lr auto: the training diverged at every rate that was tried: check the data.")
    return FoundRate(best, losses, steps, len(every))


def _train(
    model: nn.Module, objective: Objective, batches: Batches, config: ClassifyConfig, rate: float, steps: int
) -> None:
    optimizer = config.optimizer.model_copy(update={"lr": rate})
    settings = config.training.model_copy(update={"steps": steps, "epochs": None, "evaluate_every": "0 steps"})
    schedule = ScheduleSection(name="constant", warmup_steps=min(WARMUP, steps - 1))
    machine = config.machine.model_copy(update={"precision": "fp32"})
    plan = Plan(make_optimizer(model, optimizer, "fp32"), Schedule(schedule, steps), settings, optimizer.clip)
    try:
        Trainer(Learner(model, objective, batches), plan, Environment(make_accelerator(machine))).fit()
    except RunFailed:  # the loss is not finite: it is worse than any other
        for weight in model.parameters():
            weight.data.fill_(math.nan)
