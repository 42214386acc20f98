"""A live bar on a terminal, plain lines elsewhere: step, epoch, loss, rates, time left."""

from __future__ import annotations

import time

from rich.progress import BarColumn, Progress

from attnlab.base import console
from attnlab.base.formats import clock
from attnlab.training.callbacks import Callback, LogLine, Outlook, StepReport
from attnlab.training.snapshot import TrainState

LINE_EVERY = 10.0  # seconds between plain lines
MEMORY = 0.95  # how slowly the shown rates forget


def progress(label: str) -> Callback:
    """The bar or the lines, whichever suits where standard error goes; nothing with --quiet."""
    if console.verbosity() <= console.Verbosity.QUIET:
        return Callback()
    return ProgressBar(label) if console.err.is_terminal else ProgressLines(label)


class Rates:
    """The last logged loss, smoothed speed, and the time left by the wall clock."""

    def __init__(self, outlook: Outlook, state: TrainState) -> None:
        self.outlook = outlook
        self.first_step, self.started = state.step, time.monotonic()
        self.loss: float | None = None
        self.seconds = self.examples = self.tokens = 0.0

    def add(self, report: StepReport) -> None:
        for name in ("seconds", "examples", "tokens"):
            setattr(self, name, MEMORY * getattr(self, name) + getattr(report, name))

    def text(self, state: TrainState) -> str:
        epoch = min(state.step, self.outlook.steps) / max(1.0, self.outlook.steps_per_epoch)
        seconds = self.seconds or 1e-9
        loss = "" if self.loss is None else f"loss {self.loss:.3f}  "
        return (
            f"epoch {epoch:.1f}  {loss}"
            f"{self.examples / seconds:,.0f} ex/s  {self.tokens / seconds:,.0f} tok/s  "
            f"{clock(self.left(state))} left"
        )

    def left(self, state: TrainState) -> float:
        done = state.step - self.first_step
        return (time.monotonic() - self.started) / max(1, done) * (self.outlook.steps - state.step)


def evaluation_text(values: dict[str, float], best: bool) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items()) + ("  (best)" if best else "")


class ProgressBar(Callback):
    def __init__(self, label: str) -> None:
        self.label, self.evaluation = label, ""

    def on_start(self, state: TrainState, outlook: Outlook) -> None:
        self.rates = Rates(outlook, state)
        self.bar = Progress(
            "{task.description}",
            BarColumn(bar_width=24),
            "{task.completed}/{task.total}",
            "{task.fields[text]}",
            console=console.err,
        )
        self.task = self.bar.add_task(self.label, total=outlook.steps, completed=state.step, text="")
        self.bar.start()

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self.rates.loss = line.loss

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.rates.add(report)
        self.bar.update(self.task, completed=state.step, text=self.rates.text(state) + self.evaluation)

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self.evaluation = f"  dev: {evaluation_text(values, best)}"
        self.bar.update(self.task, text=self.rates.text(state) + self.evaluation)

    def on_end(self, state: TrainState) -> None:
        self.bar.stop()


class ProgressLines(Callback):
    def __init__(self, label: str) -> None:
        self.label = label

    def on_start(self, state: TrainState, outlook: Outlook) -> None:
        self.rates = Rates(outlook, state)
        self.steps = outlook.steps
        self.next_line = time.monotonic()

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self.rates.loss = line.loss

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.rates.add(report)
        if time.monotonic() >= self.next_line or state.step == self.steps:
            self.next_line = time.monotonic() + LINE_EVERY
            console.say(f"{self.label}: step {state.step}/{self.steps}  {self.rates.text(state)}")

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        console.say(f"{self.label}: step {state.step}/{self.steps}  dev: {evaluation_text(values, best)}")
