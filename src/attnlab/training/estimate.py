"""What a run would cost, from a few real steps on a copy of the model."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass

import torch
from torch import nn

from attnlab.base.randomness import random_untouched
from attnlab.data.batching import Batch, Batches
from attnlab.training.batch_size import OPTIMIZER_COPIES
from attnlab.training.memory import measured
from attnlab.training.objectives import Objective


@dataclass(frozen=True)
class Estimate:
    """Seconds of training steps in all, and bytes at the peak: weights, gradients, optimizer, activations."""

    seconds: float
    bytes: int


def estimate(model: nn.Module, objective: Objective, batches: Batches, steps: int, device: str) -> Estimate:
    """Time a few batches of typical length, and the memory of the longest one: of this process's part of them."""
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
        with measured(device) as peak:
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
