"""The largest batch that fits, searched for by doubling until it fails, then bisecting.

'auto' leaves at least `AUTO_STEPS` steps per epoch, 'largest' does not: all of a small training set may fit into one
batch, and a model that makes one step per epoch hardly learns.

Each trial passes the longest examples forward and backward. On a GPU a trial fails by running out of memory, on a CPU
by going over a budget (half of the free memory by default), because a machine without free memory kills the process.
A size that earlier trials predict to be over the budget is not tried. Trials use a copy of the model and leave the
random generators unchanged, so the run that follows is the same as without them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from attnlab.base import console
from attnlab.base.errors import DoesNotFit
from attnlab.base.machine import facts
from attnlab.base.machine.facts import is_out_of_memory
from attnlab.base.randomness import random_untouched
from attnlab.config.sections import AUTO_STEPS
from attnlab.data.batching import Batches
from attnlab.training.estimate import OPTIMIZER_COPIES, measure_peak
from attnlab.training.objectives import Objective

LIMIT = 4096


@dataclass(frozen=True)
class BatchSize:
    """The chosen size, what it and the budget are in bytes, and the sizes that were tried, in order."""

    asked: str
    size: int
    bound: str
    """Why it is not larger: memory, steps, examples, or the limit of the search."""
    bytes: int
    budget: int
    tried: tuple[tuple[int, bool], ...]
    processes: int = 1

    def sentence(self) -> str:
        need = f"needs {self.bytes / facts.GIB:.2f} of {self.budget / facts.GIB:.2f} GiB"
        if self.processes > 1:
            need = f"{self.size // self.processes} in each of {self.processes} processes, which {need} each"
        why = {
            "memory": "the most that fit",
            "steps": f"the most that leave {AUTO_STEPS} steps per epoch",
            "examples": "all training examples",
            "limit": "the most that are tried",
        }[self.bound]
        return f"batch size {self.asked}: {self.size}, {why} ({need}; {len(self.tried)} sizes tried)."


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest n up to `limit` with fits(n), if everything smaller than a size that fits also fits; 0 for none."""
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
    asked: str = "auto",
    budget: float | None = None,
    processes: int = 1,
    local_processes: int | None = None,
) -> BatchSize:
    """The largest size that fits, tried on a copy of `model`; `asked` is auto or largest, `budget` in bytes.

    One process tries while the others wait. Each has its own GPU, or an equal part of the memory that the
    `local_processes` on this machine share.
    """
    allowed = budget if budget is not None else _default_budget(device)
    if not device.startswith("cuda"):
        allowed /= local_processes or processes
    trial = _Trial(model, objective, batches, device, allowed)
    bounds = _bounds(batches, asked, processes)
    bound = min(bounds, key=lambda name: bounds[name])
    with random_untouched():
        size = largest(trial.fits, bounds[bound])
    if size == 0:
        raise DoesNotFit(
            f"not even one example fits into {allowed / facts.GIB:.2f} GiB: use a smaller model or a "
            "shorter context, or raise --batch-memory."
        )
    bound = bound if size == bounds[bound] else "memory"
    return BatchSize(asked, size * processes, bound, trial.needs[size], int(allowed), tuple(trial.tried), processes)


def _bounds(batches: Batches, asked: str, processes: int) -> dict[str, int]:
    """The most examples that one process may take, by reason."""
    examples = len(batches.plan.lengths)
    bounds = {"examples": -(-examples // processes), "limit": LIMIT}
    if asked == "auto":
        bounds["steps"] = max(1, examples // (AUTO_STEPS * batches.accumulate * processes))
    return bounds


def _default_budget(device: str) -> float:
    if device.startswith("cuda"):
        return 0.95 * torch.cuda.mem_get_info()[0]
    return 0.5 * facts.memory()[1]


class _Trial:
    def __init__(self, model: nn.Module, objective: Objective, batches: Batches, device: str, budget: float) -> None:
        self.objective, self.batches, self.device, self.budget = objective, batches, device, budget
        self.model = copy.deepcopy(model).to(device).train()
        weights = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
        self.fixed = OPTIMIZER_COPIES * weights  # in use with every batch
        self.needs: dict[int, int] = {}
        self.tried: list[tuple[int, bool]] = []

    def fits(self, size: int) -> bool:
        fits = self._predicted(size) <= self.budget and self._try(size)
        self.tried.append((size, fits))
        console.detail(f"batch size {size}: {'fits' if fits else 'does not fit'}")
        return fits

    def _predicted(self, size: int) -> float:
        """The memory a size needs on a CPU, extrapolated linearly from the two largest trials; 0 if unknown."""
        sizes = sorted(self.needs)[-2:]
        if self.device.startswith("cuda") or len(sizes) < 2 or size <= sizes[-1]:
            return 0.0
        (small, large), needs = sizes, self.needs
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
        with measure_peak(self.device) as peak:
            loss = self.objective(self.model, batch)
            loss.backward()
            del loss
        return peak.bytes + self.fixed
