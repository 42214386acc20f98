"""What `compile: auto` means for a run: some steps uncompiled and some compiled; the faster is used.

Compiling takes a minute or two before the first step. It is used only if the whole run gains more than that, and
not tried if the run is too short.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from torch import nn

from attnlab.base.console import clock
from attnlab.base.errors import RunFailed
from attnlab.data.batching import Batches
from attnlab.training.compiling import why_not
from attnlab.training.estimate import TrainingSpeed, measure_speed
from attnlab.training.objectives import Objective

if TYPE_CHECKING:
    from attnlab.config.job import JobConfig

LONG = 20 * 60.0
"""Runs shorter than this many seconds do not try to compile."""
CLEAR_GAIN = 1.05

Choice = tuple[Literal["on", "off"], str]


def choose_compile(model: nn.Module, objective: Objective, batches: Batches, config: JobConfig, steps: int) -> Choice:
    """'on' or 'off', and the sentence with the reason."""
    plain = _speed(model, objective, batches, config, "off")
    seconds = plain.seconds_per_step * steps
    if seconds < LONG:
        return "off", f"compile: off, a run of about {clock(seconds)} is too short to recover the time of compiling."
    if reason := why_not(config.machine.device):
        return "off", f"compile: off, torch.compile does not work on this machine ({reason})."
    start = time.perf_counter()
    try:
        fast = _speed(model, objective, batches, config, "on")
    except RunFailed as failure:
        return "off", f"compile: off, {failure}"
    return decide(plain.seconds_per_step, fast.seconds_per_step, steps, time.perf_counter() - start)


def decide(plain: float, fast: float, steps: int, cost: float) -> Choice:
    """From the seconds per step uncompiled and compiled, and the seconds the trial took."""
    pays = fast * CLEAR_GAIN < plain and (plain - fast) * steps > cost
    measured = f"a step takes {fast:.3g} s compiled and {plain:.3g} s uncompiled, the trial took {clock(cost)}"
    return ("on", f"compile: on, {measured}.") if pays else ("off", f"compile: off, {measured}.")


def _speed(
    model: nn.Module, objective: Objective, batches: Batches, config: JobConfig, compile: Literal["on", "off"]
) -> TrainingSpeed:
    machine = config.machine.model_copy(update={"compile": compile})
    return measure_speed(model, objective, batches, config.model_copy(update={"machine": machine}))
