"""Callbacks of the training loop: metrics to a file and to TensorBoard, and the state that callbacks see.

A callback receives every step and every evaluation and changes nothing. It may end the run by raising `Stopped`; the
state is saved first.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attnlab.distributed.team import Processes
from attnlab.runs.metrics import MetricsWriter, cut_back

if TYPE_CHECKING:
    from attnlab.training.objectives import Joint


@dataclass
class TrainState:
    """The progress of a run, in plain values that fit in a JSON file."""

    step: int = 0  # optimizer steps done
    epoch: int = 0  # the epoch the next batch is from
    batch: int = 0  # its position in that epoch
    examples: int = 0
    tokens: int = 0  # real tokens seen, without padding
    positions: int = 0  # tokens and padding
    seconds: float = 0.0  # spent in training steps
    evaluated_at: int = -1  # the step of the last evaluation
    best: float | None = None
    best_tie: float | None = None  # of the best evaluation: what decides between equal ones
    best_step: int = 0
    worse: int = 0  # evaluations since the best one
    stopped_early: bool = False
    metrics_position: int = 0
    last: dict[str, float] = field(default_factory=dict)  # the last evaluation's values

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> TrainState:
        """A saved state; raises if a number in it is none."""
        state = cls(**saved)
        for name, default in vars(cls()).items():
            if isinstance(default, int | float) and not isinstance(getattr(state, name), int | float):
                raise TypeError(f"{name} is {getattr(state, name)!r}")
        return state

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class StepReport:
    """The facts about one optimizer step that need no wait for the device."""

    lr: float
    seconds: float
    examples: int
    tokens: int
    positions: int


@dataclass(frozen=True)
class LogLine:
    """The steps since the last logged line."""

    loss: float
    lr: float
    gradient_norm: float | None
    seconds: float
    examples: int
    tokens: int
    positions: int

    def values(self) -> dict[str, float]:
        seconds = self.seconds or 1e-9
        return {
            "loss": self.loss,
            "lr": self.lr,
            "examples_per_second": round(self.examples / seconds, 2),
            "tokens_per_second": round(self.tokens / seconds, 1),
            "padding": round(1 - self.tokens / max(1, self.positions), 4),
        }


@dataclass(frozen=True)
class RunLength:
    """The length of a run: its steps, and about how many of them an epoch has."""

    steps: int
    steps_per_epoch: float


class Callback:
    """Does nothing; subclasses override the events they need."""

    def on_start(self, state: TrainState, length: RunLength) -> None: ...

    def on_step(self, state: TrainState, report: StepReport) -> None: ...

    def on_log(self, state: TrainState, line: LogLine) -> None: ...

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None: ...

    def on_save(self, state: TrainState) -> None: ...

    def on_end(self, state: TrainState) -> None: ...


class JointProgress(Callback):
    """Passes the progress of the run to a joint objective, also after a resume."""

    def __init__(self, objective: Joint) -> None:
        self.objective, self.steps = objective, 1

    def on_start(self, state: TrainState, length: RunLength) -> None:
        self.steps = length.steps
        self._update(state)

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self._update(state)

    def _update(self, state: TrainState) -> None:
        self.objective.progress = min(1.0, state.step / max(1, self.steps - 1))  # of the next step


class MetricsFile(Callback):
    """Writes one line of JSON per logged line and per evaluation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer: MetricsWriter | None = None

    def on_start(self, state: TrainState, length: RunLength) -> None:
        cut_back(self.path, state.metrics_position)
        self.writer = MetricsWriter(self.path)

    def on_log(self, state: TrainState, line: LogLine) -> None:
        norm = {"gradient_norm": line.gradient_norm} if line.gradient_norm is not None else {}
        self._line(state, "train", {**line.values(), **norm})

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self._line(state, "dev", {**values, "best": best})

    def on_save(self, state: TrainState) -> None:
        if self.writer is not None:
            state.metrics_position = self.writer.position()

    def on_end(self, state: TrainState) -> None:
        if self.writer is not None:
            self.writer.close()

    def _line(self, state: TrainState, split: str, values: dict[str, Any]) -> None:
        if self.writer is not None:
            self.writer.write(
                step=state.step,
                epoch=state.epoch,
                split=split,
                **values,
                tokens=state.tokens,
                seconds=round(state.seconds, 3),
            )


class TensorBoard(Callback):
    """Writes the same numbers as TensorBoard events, if that extra is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer: Any = None

    @staticmethod
    def installed() -> bool:
        try:
            import tensorboard  # noqa: F401
        except ImportError:
            return False
        return True

    def on_start(self, state: TrainState, length: RunLength) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # Events after the checkpoint belong to steps that will be repeated.
        self.writer = SummaryWriter(str(self.folder), purge_step=state.step + 1 if state.step else None)

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self._write("train", line.values(), state.step)

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self._write("dev", values, state.step)

    def on_end(self, state: TrainState) -> None:
        self.writer.close()

    def _write(self, split: str, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(f"{split}/{name}", value, step)


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


@dataclass
class Sums:
    """Over the settled steps since the last logged line; a checkpoint has them, so that a resumed run logs the same."""

    loss: float = 0.0  # weighted by tokens
    lr: float = 0.0  # of the last step
    norm: float | None = None  # of the last step
    seconds: float = 0.0
    examples: int = 0
    tokens: int = 0
    positions: int = 0

    def add(self, report: StepReport, loss: float, norm: float | None) -> None:
        self.loss += loss * report.tokens
        self.lr, self.norm = report.lr, norm
        self.seconds += report.seconds
        self.examples += report.examples
        self.tokens += report.tokens
        self.positions += report.positions


class Window:
    """The steps since the last logged line; losses stay on the device until they are needed."""

    def __init__(self) -> None:
        self.pending: list[Step] = []  # losses still on the device
        self.sums = Sums()

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Window:
        window = cls()
        window.sums = Sums(**saved)
        return window

    def to_dict(self) -> dict[str, Any]:
        """The settled steps, in plain values for a checkpoint."""
        return asdict(self.sums)

    def add(self, report: StepReport, loss: Tensor, norm: Tensor | None, where: Where) -> None:
        self.pending.append(Step(report, loss, norm, where))

    def settle(self, processes: Processes, infinite_norms: bool) -> NotFinite | None:
        """Fetch the pending losses, summed over the processes, at once; returns the first that is not finite."""
        steps, self.pending = self.pending, []
        if not steps:
            return None
        losses = processes.total(torch.stack([step.loss.float() for step in steps]).tolist())
        norms = [None] * len(steps) if steps[0].norm is None else _floats([step.norm for step in steps])
        for step, loss, norm in zip(steps, losses, norms, strict=True):
            if not math.isfinite(loss):
                return NotFinite(f"the loss is {loss}", step.report.lr, step.where)
            if norm is not None and not math.isfinite(norm) and not infinite_norms:
                return NotFinite(f"the gradient norm is {norm}", step.report.lr, step.where)
            self.sums.add(step.report, loss, norm)
        return None

    def line(self) -> LogLine:
        """The settled steps as one line."""
        sums, self.sums = self.sums, Sums()
        return LogLine(
            sums.loss / max(1, sums.tokens),
            sums.lr,
            sums.norm,
            sums.seconds,
            sums.examples,
            sums.tokens,
            sums.positions,
        )


def _floats(tensors: list[Tensor | None]) -> list[float | None]:
    values: list[float | None] = []
    values += torch.stack([tensor.float() for tensor in tensors if tensor is not None]).tolist()
    return values
