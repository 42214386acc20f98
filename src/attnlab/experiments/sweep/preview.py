"""What a sweep would run and cost: the lines of a dry run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from attnlab.base.formats import clock
from attnlab.experiments.sweep.config import DEFAULT_TRIALS
from attnlab.experiments.sweep.space import Choices, Settings, axes_of, job_config, label_of
from attnlab.experiments.sweep.worker import in_stages
from attnlab.jobs.engine import cost_of
from attnlab.jobs.registry import KINDS


def preview(config: Any) -> Iterator[str]:
    sweep, axes = config.sweep, axes_of(config)
    for name, axis in axes.items():
        yield f"{name}: {axis}"
    cells = math.prod(len(axis.values) for axis in axes.values() if isinstance(axis, Choices))
    if sweep.search != "grid":
        cells = sweep.trials or (0 if sweep.seconds else DEFAULT_TRIALS)
    seeds = f"{sweep.seeds} seed{'s' if sweep.seeds > 1 else ''}"
    number = f"{cells} cells with {seeds} each, {cells * sweep.seeds} runs" if cells else f"runs with {seeds} each"
    yield f"{sweep.search}: {number}" + (f", none begun after {clock(sweep.seconds)}" if sweep.seconds else "")
    if in_stages(sweep.job):
        yield f"time: not known before the first run, since the job {sweep.job!r} consists of several"
        return
    first: Settings = {name: axis.values[0] if isinstance(axis, Choices) else axis.low for name, axis in axes.items()}
    cost = cost_of(KINDS[sweep.job].job()(job_config(config, first)))
    yield f"time: about {clock(cost.seconds)} for the steps of one run ({label_of(first)}), evaluations not counted"
