"""The steps since the last logged line. Their losses stay on the device until somebody has to know them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.distributed.team import Processes
from attnlab.training.callbacks import LogLine, StepReport


@dataclass(frozen=True)
class Where:
    """A step: its number, its place in the data, and the examples this process had."""

    step: int
    epoch: int
    batch: int
    indices: list[int]


@dataclass(frozen=True)
class NotFinite:
    """What was not finite, and where."""

    what: str
    rate: float
    where: Where


@dataclass
class Step:
    report: StepReport
    loss: Tensor
    norm: Tensor | None
    where: Where


class Window:
    def __init__(self) -> None:
        self.pending: list[Step] = []  # losses still on the device
        self.reports: list[StepReport] = []
        self.losses: list[float] = []
        self.norm: float | None = None

    def add(self, report: StepReport, loss: Tensor, norm: Tensor | None, where: Where) -> None:
        self.pending.append(Step(report, loss, norm, where))

    def settle(self, processes: Processes, infinite_norms: bool) -> NotFinite | None:
        """Fetch the pending losses, summed over the processes, in one go; the first that is not finite is returned."""
        steps, self.pending = self.pending, []
        if not steps:
            return None
        losses = processes.total(torch.stack([step.loss.float() for step in steps]).tolist())
        norms = [None] * len(steps) if steps[0].norm is None else _floats([step.norm for step in steps])
        self.reports += [step.report for step in steps]
        self.losses += losses
        self.norm = norms[-1]
        for step, loss, norm in zip(steps, losses, norms, strict=True):
            if not math.isfinite(loss):
                return NotFinite(f"the loss is {loss}", step.report.lr, step.where)
            if norm is not None and not math.isfinite(norm) and not infinite_norms:
                return NotFinite(f"the gradient norm is {norm}", step.report.lr, step.where)
        return None

    def line(self) -> LogLine:
        """The settled steps as one line: the loss is weighted by tokens."""
        reports, losses = self.reports, self.losses
        self.reports, self.losses = [], []
        tokens = sum(report.tokens for report in reports)
        return LogLine(
            loss=sum(loss * report.tokens for loss, report in zip(losses, reports, strict=True)) / max(1, tokens),
            lr=reports[-1].lr,
            gradient_norm=self.norm,
            seconds=sum(report.seconds for report in reports),
            examples=sum(report.examples for report in reports),
            tokens=tokens,
            positions=sum(report.positions for report in reports),
        )


def _floats(tensors: list[Tensor | None]) -> list[float | None]:
    values: list[float | None] = []
    values += torch.stack([tensor.float() for tensor in tensors if tensor is not None]).tolist()
    return values
