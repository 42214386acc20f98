"""What `precision: auto` means for a run on a CPU: a few steps of its model in fp32 and in bf16, the faster is used.

A CPU whose bf16 matrix products are fast can still take longer for a whole step of a small model. bf16 rounds more
coarsely, so it must be clearly faster.
"""

from __future__ import annotations

import copy
import time
from itertools import islice
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from attnlab.base.errors import first_line
from attnlab.base.machine.precision import CLEAR_GAIN
from attnlab.base.randomness import random_untouched
from attnlab.data.batching import Batch, Batches
from attnlab.training.muon import Muon
from attnlab.training.objectives import Objective
from attnlab.training.optimizers import make_optimizer

if TYPE_CHECKING:
    from attnlab.config.job import JobConfig

WARM_UP = 2  # steps in each precision
FEWEST, MOST = 5, 50  # timed steps in each precision: the shorter they take, the more of them
SAMPLED = 9  # steps from which a typical one is taken
ENOUGH, LONGEST = 1.0, 60.0  # seconds after which the fewest steps suffice, and after which even one does
FEWEST_STEPS = 100  # shorter runs are not measured

Precision = Literal["fp32", "bf16"]
PrecisionChoice = tuple[Precision, str]


def choose_precision(
    model: nn.Module, objective: Objective, batches: Batches, config: JobConfig, steps: int
) -> PrecisionChoice:
    """'fp32' or 'bf16', and the sentence with the reason. Call it only where bf16 works and its products are fast."""
    if steps < FEWEST_STEPS:
        return "fp32", f"precision: fp32, a run of {steps} steps is too short to measure whether bf16 is faster."
    try:
        seconds = measure_steps(model, objective, batches, config)
    except RuntimeError as error:  # an operation of the model that has no bf16 kernel
        return "fp32", f"precision: fp32, a bf16 step fails here ({first_line(error)})."
    return decide(seconds["fp32"], seconds["bf16"])


def decide(fp32: float, bf16: float) -> PrecisionChoice:
    """From the seconds per step in each precision."""
    if bf16 * CLEAR_GAIN < fp32:
        return "bf16", f"precision: bf16, an fp32 step takes {fp32 / bf16:.2g} times as long here."
    return "fp32", f"precision: fp32, a bf16 step takes {bf16 / fp32:.2g} times as long here."


def measure_steps(
    model: nn.Module, objective: Objective, batches: Batches, config: JobConfig
) -> dict[Precision, float]:
    """Seconds of the fastest of some training steps of a copy of the model, both precisions in turn on one batch.

    Other programs can only make a step longer, so the fastest is the best measurement. A single thread is timed by the
    processor time of this process, which does not count other programs at all.
    """
    trial = copy.deepcopy(model).train()
    optimizer = make_optimizer(trial, config.optimizer)
    clock = time.process_time if config.machine.threads == 1 else time.perf_counter
    seconds: dict[Precision, list[float]] = {"fp32": [], "bf16": []}
    step, begin = _typical_step(batches), time.perf_counter()
    with random_untouched():
        for done in range(WARM_UP + MOST):
            elapsed, timed = time.perf_counter() - begin, done - WARM_UP
            if (timed >= FEWEST and elapsed > ENOUGH) or (timed >= 1 and elapsed > LONGEST):
                break
            for precision, times in seconds.items():
                if isinstance(optimizer, Muon):
                    optimizer.iterate_in = torch.bfloat16 if precision == "bf16" else None
                start = clock()
                _train_step(trial, objective, optimizer, step, precision)
                if done >= WARM_UP:
                    times.append(clock() - start)
    return {precision: min(times) for precision, times in seconds.items()}


def _typical_step(batches: Batches) -> list[Batch]:
    """The batches of the step with the median number of positions among the first ones."""
    steps = [step for step, _ in islice(batches.stream(0, 0), SAMPLED)]
    return sorted(steps, key=lambda step: sum(batch.positions for batch in step))[len(steps) // 2]


def _train_step(
    model: nn.Module, objective: Objective, optimizer: torch.optim.Optimizer, batches: list[Batch], precision: Precision
) -> None:
    optimizer.zero_grad()
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = objective(model, batch)
        loss.backward()
    optimizer.step()
