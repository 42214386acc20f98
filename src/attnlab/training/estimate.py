"""Time and memory of a run before it starts, from a few real steps on a copy of the model.

A GPU's allocator counts memory itself. On a CPU torch's profiler lists every allocation; the resident memory of the
process would not do, because freed memory often stays with it.
"""

from __future__ import annotations

import copy
import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from attnlab.base.randomness import random_untouched
from attnlab.data.batching import Batch, Batches
from attnlab.training.objectives import Objective

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
    """Measure the time of a few typical batches and the memory of the longest one, this process's part of each."""
    trial = copy.deepcopy(model).to(device).train()
    weights = sum(p.numel() * p.element_size() for p in trial.parameters())
    learning = sum(p.numel() * p.element_size() for p in trial.parameters() if p.requires_grad)
    plan = batches.plan.epoch(0)
    with random_untouched():
        spread = plan[:: max(1, len(plan) // 4)][:4]
        _pass(trial, objective, batches.share(spread[0], 0).to(torch.device(device)))  # warms up
        times = [_timed(trial, objective, batches.share(indices, 0).to(torch.device(device))) for indices in spread]
        worst = batches.longest(-(-len(plan[0]) // batches.count)).to(torch.device(device))
        trial.zero_grad()
        with measure_peak(device) as peak:
            objective(trial, worst).backward()
    seconds = sum(times) / len(times) * batches.accumulate * steps
    return Estimate(seconds, weights + OPTIMIZER_COPIES * learning + peak.bytes)


def _pass(model: nn.Module, objective: Objective, batch: Batch) -> None:
    model.zero_grad()
    objective(model, batch).backward()


def _timed(model: nn.Module, objective: Objective, batch: Batch) -> float:
    start = time.perf_counter()
    _pass(model, objective, batch)
    if batch.inputs and next(iter(batch.inputs.values())).is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start
