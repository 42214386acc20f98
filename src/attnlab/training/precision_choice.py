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
from attnlab.base.randomness import random_untouched
from attnlab.data.batching import Batch, Batches
from attnlab.training.objectives import Objective
from attnlab.training.optimizers import make_optimizer

if TYPE_CHECKING:
    from attnlab.config.job import JobConfig

WARM_UP = 2  # steps in each precision
FEWEST, MOST = 5, 50  # timed steps in each precision: the shorter they take, the more of them
ENOUGH, LONGEST = 0.5, 60.0  # seconds after which the fewest steps suffice, and after which even one does
FEWEST_STEPS = 100  # of a run for which measuring is worth the time it takes
CLEAR_GAIN = 1.1

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
    """Seconds of the fastest training step of a copy of the model, both precisions in turn on the same batches.

    Other programs can only make a step longer, so the fastest one is the best measurement.
    """
    trial = copy.deepcopy(model).train()
    optimizer = make_optimizer(trial, config.optimizer)
    seconds: dict[Precision, list[float]] = {"fp32": [], "bf16": []}
    begin = time.perf_counter()
    with random_untouched():
        for done, (step, _) in enumerate(islice(batches.stream(0, 0), WARM_UP + MOST)):
            elapsed, timed = time.perf_counter() - begin, done - WARM_UP
            if (timed >= FEWEST and elapsed > ENOUGH) or (timed >= 1 and elapsed > LONGEST):
                break
            for precision, times in seconds.items():
                start = time.perf_counter()
                _train_step(trial, objective, optimizer, step, precision)
                if done >= WARM_UP:
                    times.append(time.perf_counter() - start)
    return {precision: min(times) for precision, times in seconds.items()}


def _train_step(
    model: nn.Module, objective: Objective, optimizer: torch.optim.Optimizer, batches: list[Batch], precision: Precision
) -> None:
    optimizer.zero_grad()
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = objective(model, batch)
        loss.backward()
    optimizer.step()
