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
    """Measurements of one optimizer step."""

    loss: float
    lr: float
    gradient_norm: float | None
    seconds: float
    examples: int
    tokens: int
    positions: int


@dataclass(frozen=True)
class RunLength:
    """The length of a run: its steps, and about how many of them an epoch has."""

    steps: int
    steps_per_epoch: float


class Callback:
    """Does nothing; subclasses override the events they need."""

    def on_start(self, state: TrainState, length: RunLength) -> None: ...

    def on_step(self, state: TrainState, report: StepReport) -> None: ...

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


class Averages:
    """Losses and rates since the last line, weighted by tokens."""

    def __init__(self) -> None:
        self.reports: list[StepReport] = []

    def add(self, report: StepReport) -> None:
        self.reports.append(report)

    def take(self) -> dict[str, float]:
        reports, self.reports = self.reports, []
        seconds = sum(r.seconds for r in reports) or 1e-9
        tokens, positions = sum(r.tokens for r in reports), sum(r.positions for r in reports)
        return {
            "loss": sum(r.loss * r.tokens for r in reports) / max(1, tokens),
            "lr": reports[-1].lr,
            "examples_per_second": round(sum(r.examples for r in reports) / seconds, 2),
            "tokens_per_second": round(tokens / seconds, 1),
            "padding": round(1 - tokens / max(1, positions), 4),
        }


class MetricsFile(Callback):
    """Writes one line of JSON every `every` steps and at each evaluation."""

    def __init__(self, path: Path, every: int) -> None:
        self.path, self.every = path, every
        self.averages = Averages()
        self.writer: MetricsWriter | None = None

    def on_start(self, state: TrainState, length: RunLength) -> None:
        cut_back(self.path, state.metrics_position)
        self.writer = MetricsWriter(self.path)

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.averages.add(report)
        if state.step % self.every == 0:
            self._train_line(state, report)

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self._line(state, "dev", {**values, "best": best})

    def on_save(self, state: TrainState) -> None:
        if self.writer is not None:
            state.metrics_position = self.writer.position()

    def on_end(self, state: TrainState) -> None:
        if self.writer is not None:
            self.writer.close()

    def _train_line(self, state: TrainState, report: StepReport) -> None:
        norm = {"gradient_norm": report.gradient_norm} if report.gradient_norm is not None else {}
        self._line(state, "train", {**self.averages.take(), **norm})

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

    def __init__(self, folder: Path, every: int) -> None:
        self.folder, self.every = folder, every
        self.averages = Averages()
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

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.averages.add(report)
        if state.step % self.every == 0:
            self._write("train", self.averages.take(), state.step)

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self._write("dev", values, state.step)

    def on_end(self, state: TrainState) -> None:
        self.writer.close()

    def _write(self, split: str, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(f"{split}/{name}", value, step)
