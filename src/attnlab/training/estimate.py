"""Time and memory of a run before it starts, from a few real steps on a copy of the model.

A GPU's allocator counts memory itself. On a CPU torch's profiler lists every allocation; the resident memory of the
process is not usable, because freed memory often stays with it.
"""

from __future__ import annotations

import copy
import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from attnlab.base.randomness import random_untouched
from attnlab.data.batching import Batch, Batches
from attnlab.training.callbacks import Callback, RunLength, StepReport, TrainState
from attnlab.training.loop import Environment, Learner, Plan, Trainer
from attnlab.training.objectives import Objective
from attnlab.training.optimizers import Schedule, make_optimizer
from attnlab.training.setup import make_accelerator

if TYPE_CHECKING:
    from attnlab.config.job import JobConfig


OPTIMIZER_COPIES = 2  # Adam keeps two tensors per parameter; the others keep less


class PeakMemory:
    """Bytes at the peak, beyond what was in use before."""

    def __init__(self) -> None:
        self.bytes = 0


@contextmanager
def measure_peak(device: str) -> Iterator[PeakMemory]:
    """Measure the peak memory inside the block."""
    gc.collect()
    with _on_gpu() if device.startswith("cuda") else _on_cpu() as peak:
        yield peak


@contextmanager
def _on_gpu() -> Iterator[PeakMemory]:
    peak = PeakMemory()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    try:
        yield peak
    finally:
        peak.bytes = torch.cuda.max_memory_allocated() - before


@contextmanager
def _on_cpu() -> Iterator[PeakMemory]:
    peak = PeakMemory()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise the profiler prints to standard error
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=False) as profiler:
        yield peak
    changes = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    in_use = 0
    for change in sorted(changes, key=lambda event: event.start_ns()):
        in_use += change.nbytes()
        peak.bytes = max(peak.bytes, in_use)


@dataclass(frozen=True)
class Estimate:
    """Seconds of all training steps, and bytes at the peak: weights, gradients, optimizer, activations."""

    seconds: float
    bytes: int


def estimate(model: nn.Module, objective: Objective, batches: Batches, steps: int, device: str) -> Estimate:
    """Measure the time of a few typical batches and the memory of the longest one, each as this process's share."""
    trial = copy.deepcopy(model).to(device).train()
    weights = sum(p.numel() * p.element_size() for p in trial.parameters())
    learning = sum(p.numel() * p.element_size() for p in trial.parameters() if p.requires_grad)
    plan = batches.plan.epoch(0)
    with random_untouched():
        spread = plan[:: max(1, len(plan) // 4)][:4]
        _timed(trial, objective, batches.built(spread[0], 0), device)  # warms up
        times = [_timed(trial, objective, batches.built(indices, 0), device) for indices in spread]
        worst = batches.longest(-(-len(plan[0]) // batches.count)).to(torch.device(device))
        trial.zero_grad()
        with measure_peak(device) as peak:
            objective(trial, worst).backward()
    seconds = sum(times) / len(times) * batches.accumulate * steps
    return Estimate(seconds, weights + OPTIMIZER_COPIES * learning + peak.bytes)


def _timed(model: nn.Module, objective: Objective, pieces: list[Batch], device: str) -> float:
    moved = [piece.to(torch.device(device)) for piece in pieces]
    start = time.perf_counter()
    model.zero_grad()
    for piece in moved:
        objective(model, piece).backward()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - start


WARM_UP, TIMED = 3, 12  # steps


@dataclass(frozen=True)
class TrainingSpeed:
    """The seconds and tokens of each measured step."""

    seconds: list[float]
    tokens: list[int]

    @property
    def seconds_per_step(self) -> float:
        return median(self.seconds)

    @property
    def tokens_per_second(self) -> float:
        return median(tokens / max(1e-9, seconds) for tokens, seconds in zip(self.tokens, self.seconds, strict=True))


class Stopwatch(Callback):
    """Records the seconds and tokens of each step; of a single thread, processor time."""

    def __init__(self, single_thread: bool) -> None:
        self.clock = time.process_time if single_thread else time.perf_counter
        self.seconds: list[float] = []
        self.tokens: list[int] = []

    def on_start(self, state: TrainState, length: RunLength) -> None:
        self.last = self.clock()

    def on_step(self, state: TrainState, report: StepReport) -> None:
        now = self.clock()
        self.seconds.append(now - self.last)
        self.tokens.append(report.tokens)
        self.last = now


def measure_speed(model: nn.Module, objective: Objective, batches: Batches, config: JobConfig) -> TrainingSpeed:
    """The speed of training a copy for a few steps; machine settings must be resolved. Compiling is not counted."""
    steps = WARM_UP + TIMED
    settings = config.training.model_copy(update={"steps": steps, "epochs": None, "evaluate_every": "0 steps"})
    watch = Stopwatch(single_thread=config.machine.device == "cpu" and config.machine.threads == 1)
    trial = copy.deepcopy(model)
    with random_untouched():
        Trainer(
            Learner(trial, objective, batches),
            Plan(
                make_optimizer(trial, config.optimizer, config.machine.precision),
                Schedule(config.schedule, steps),
                settings,
                config.optimizer.clip,
            ),
            Environment(make_accelerator(config.machine), callbacks=[watch], compile=config.machine.compile == "on"),
        ).fit()
    return TrainingSpeed(watch.seconds[WARM_UP:], watch.tokens[WARM_UP:])
