"""The largest batch that fits, found as a person would: double until it fails, then bisect.

Each trial passes the longest examples forward and backward. On a GPU a trial fails by running out of memory,
on a CPU by going over a budget (half of the free memory unless told otherwise): a machine that is out of
memory does not say so, it kills. A size whose need lies beyond the budget, going by the trials before it, is
not tried at all. Trials use a copy of the model and leave the random generators alone: the run that follows
is the run it would have been.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.machine import facts
from attnlab.base.machine.peak import is_out_of_memory
from attnlab.base.randomness import random_untouched
from attnlab.data.batching import Batches
from attnlab.training.memory import measured
from attnlab.training.objectives import Objective

LIMIT = 4096
OPTIMIZER_COPIES = 2  # Adam keeps two tensors a parameter; the others keep less


@dataclass(frozen=True)
class Found:
    """The size, what it needs, and the sizes that were tried, in order."""

    size: int
    bytes: int
    tried: tuple[tuple[int, bool], ...]
    processes: int = 1

    def sentence(self) -> str:
        each = f"{self.size // self.processes} in each of {self.processes} processes; " if self.processes > 1 else ""
        need = f"{each}needs {self.bytes / facts.GIB:.2f} GiB{' there' if each else ''}; {len(self.tried)} sizes tried"
        return f"batch size auto: {self.size} ({need})."


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest n up to `limit` with fits(n), given that what fits still fits when smaller; 0 for none."""
    good, bad = 0, limit + 1
    size = 1
    while size < bad:
        if fits(size):
            good, size = size, min(size * 2, limit) if size < limit else bad
        else:
            bad = size
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def find_batch_size(
    model: nn.Module,
    objective: Objective,
    batches: Batches,
    device: str,
    budget: float | None = None,
    processes: int = 1,
    here: int | None = None,
) -> Found:
    """Try sizes on a copy of `model` until the largest that fits is known; `budget` in bytes.

    What fits into one process is tried, the others waiting: each has a GPU of its own, or its part of the memory, which
    those on this machine share: `here`, or all.
    """
    allowed = budget if budget is not None else _default_budget(device)
    if not device.startswith("cuda"):
        allowed /= here or processes
    trial = _Trial(model, objective, batches, device, allowed)
    limit = min(LIMIT, len(batches.plan.lengths))
    with random_untouched():
        size = largest(trial.fits, limit)
    if size == 0:
        raise UserError(
            f"not even one example fits into {allowed / facts.GIB:.2f} GiB: take a smaller model or a "
            "shorter context, or give more with --batch-memory."
        )
    return Found(size * processes, trial.needs[size], tuple(trial.tried), processes)


def _default_budget(device: str) -> float:
    if device.startswith("cuda"):
        return 0.95 * torch.cuda.mem_get_info()[0]
    return 0.5 * facts.memory()[1]


class _Trial:
    def __init__(self, model: nn.Module, objective: Objective, batches: Batches, device: str, budget: float) -> None:
        self.objective, self.batches, self.device, self.budget = objective, batches, device, budget
        self.model = copy.deepcopy(model).to(device).train()
        weights = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
        self.standing = OPTIMIZER_COPIES * weights  # will be in use beside every batch
        self.needs: dict[int, int] = {}
        self.tried: list[tuple[int, bool]] = []

    def fits(self, size: int) -> bool:
        fits = self._predicted(size) <= self.budget and self._try(size)
        self.tried.append((size, fits))
        console.detail(f"batch size {size}: {'fits' if fits else 'does not fit'}")
        return fits

    def _predicted(self, size: int) -> float:
        """What the trials so far let expect, on a CPU: growing in proportion from the two largest of them."""
        known = sorted(self.needs)[-2:]
        if self.device.startswith("cuda") or len(known) < 2 or size <= known[-1]:
            return 0.0
        (small, large), needs = known, self.needs
        slope = max(0.0, (needs[large] - needs[small]) / (large - small))
        return needs[large] + slope * (size - large)

    def _try(self, size: int) -> bool:
        try:
            self.needs[size] = self._need(size)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            self.model.zero_grad()
        return self.needs[size] <= self.budget

    def _need(self, size: int) -> int:
        batch = self.batches.longest(size).to(torch.device(self.device))
        with measured(self.device) as peak:
            loss = self.objective(self.model, batch)
            loss.backward()
            del loss
        return peak.bytes + self.standing
