"""What `compile: auto` means for a run: some steps as the model is, some compiled, and the faster one is taken.

Compiling takes a minute or two before the first step. It is taken only where the whole run gains more than that,
and not even tried where the run is too short.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from torch import nn

from attnlab.base.console import clock
from attnlab.base.errors import RunFailed
from attnlab.data.batching import Batches
from attnlab.training.compiling import why_not
from attnlab.training.estimate import Pace, measure_pace
from attnlab.training.objectives import Objective

if TYPE_CHECKING:
    from attnlab.config.job import JobConfig

LONG = 20 * 60.0
"""Seconds of a run for which trying is worth the time it takes."""
CLEAR_GAIN = 1.05

Choice = tuple[Literal["on", "off"], str]


def choose_compile(model: nn.Module, objective: Objective, batches: Batches, config: JobConfig, steps: int) -> Choice:
    """'on' or 'off', and the sentence that says why."""
    plain = _pace(model, objective, batches, config, "off")
    whole = plain.seconds_a_step * steps
    if whole < LONG:
        return "off", f"compile: off, a run of about {clock(whole)} is too short to earn back the compiling."
    if reason := why_not(config.machine.device):
        return "off", f"compile: off, torch.compile does not work on this machine ({reason})."
    start = time.perf_counter()
    try:
        fast = _pace(model, objective, batches, config, "on")
    except RunFailed as failure:
        return "off", f"compile: off, {failure}"
    return decide(plain.seconds_a_step, fast.seconds_a_step, steps, time.perf_counter() - start)


def decide(plain: float, fast: float, steps: int, cost: float) -> Choice:
    """From the seconds of a step either way, and those that trying took."""
    pays = fast * CLEAR_GAIN < plain and (plain - fast) * steps > cost
    measured = f"a step takes {fast:.3g} s compiled and {plain:.3g} s as it is, trying took {clock(cost)}"
    return ("on", f"compile: on, {measured}.") if pays else ("off", f"compile: off, {measured}.")


def _pace(
    model: nn.Module, objective: Objective, batches: Batches, config: JobConfig, compile: Literal["on", "off"]
) -> Pace:
    machine = config.machine.model_copy(update={"compile": compile})
    return measure_pace(model, objective, batches, config.model_copy(update={"machine": machine}))
