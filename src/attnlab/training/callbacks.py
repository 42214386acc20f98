"""Beside the training loop: metrics to a file, to TensorBoard, to the screen.

A callback sees every step and every evaluation and changes nothing. It may end the run by raising `Stopped`; the state
is saved first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.runs.metrics import MetricsWriter, cut_back

if TYPE_CHECKING:
    from attnlab.training.objectives import Joint
    from attnlab.training.snapshot import TrainState


@dataclass(frozen=True)
class StepReport:
    """What is known of one optimizer step without waiting for the device."""

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
