"""A live bar on a terminal and in a notebook, plain lines elsewhere: step, epoch, loss, rates, time left, the last
scores on dev.

The bar's text is fitted to the width of the terminal: the least important parts are left out first.
"""

from __future__ import annotations

import importlib
import time
from html import escape

from rich.progress import BarColumn, Progress

from attnlab.base import console
from attnlab.base.console import clock
from attnlab.training.callbacks import Callback, LogLine, RunLength, StepReport, TrainState

LINE_EVERY = 10.0  # seconds between plain lines
NOTEBOOK_EVERY = 0.25  # seconds between two states of the bar in a notebook
SMOOTHING = 0.95  # weight of earlier steps in the rates shown
WIDE = 110  # columns of a terminal with room for the longer bar
GAP = "  "
Part = tuple[int, str]  # of the text: its rank, 0 is the most important, and its words


def progress(label: str) -> Callback:
    """A bar if standard error is a terminal or a notebook, else lines; nothing with --quiet."""
    if console.verbosity() <= console.Verbosity.QUIET:
        return Callback()
    if console.err.is_jupyter:
        return NotebookBar(label)
    return ProgressBar(label) if console.err.is_terminal else ProgressLines(label)


class Rates:
    """The last logged loss, the smoothed speed, and the time left."""

    def __init__(self, length: RunLength, state: TrainState) -> None:
        self.length = length
        self.first_step, self.started = state.step, time.monotonic()
        self.loss: float | None = None
        self.seconds = self.examples = self.tokens = 0.0

    def add(self, report: StepReport) -> None:
        for name in ("seconds", "examples", "tokens"):
            setattr(self, name, SMOOTHING * getattr(self, name) + getattr(report, name))

    def parts(self, state: TrainState) -> list[Part]:
        epoch = min(state.step, self.length.steps) / max(1.0, self.length.steps_per_epoch)
        seconds = self.seconds or 1e-9
        return [
            (4, f"epoch {epoch:.1f}"),
            *([] if self.loss is None else [(0, f"loss {self.loss:.3f}")]),
            (6, f"{self.examples / seconds:,.0f} ex/s"),
            (5, f"{self.tokens / seconds:,.0f} tok/s"),
            (1, f"{clock(self.left(state))} left"),
        ]

    def text(self, state: TrainState) -> str:
        return GAP.join(text for _, text in self.parts(state))

    def left(self, state: TrainState) -> float:
        done = state.step - self.first_step
        return (time.monotonic() - self.started) / max(1, done) * (self.length.steps - state.step)


def fitted(parts: list[Part], room: int) -> str:
    """The parts in their order, without the least important ones if there is no room for all."""
    parts = list(parts)
    while parts and len(GAP.join(text for _, text in parts)) > room:
        parts.remove(max(parts))
    return GAP.join(text for _, text in parts)


def evaluation_parts(values: dict[str, float], best: bool) -> list[Part]:
    """The scores on dev, the first of them the most important."""
    texts = [f"{name} {value:.4g}" for name, value in values.items()] + (["(best)"] if best else [])
    return [(2, f"dev: {texts[0]}"), *((3, text) for text in texts[1:])] if texts else []


class ProgressBar(Callback):
    def __init__(self, label: str) -> None:
        self.label = label
        self.evaluation: list[Part] = []

    def on_start(self, state: TrainState, length: RunLength) -> None:
        self.rates = Rates(length, state)
        self.bar_width = 24 if console.err.width >= WIDE else 12
        self.bar = Progress(
            "{task.description}",
            BarColumn(bar_width=self.bar_width),
            "{task.completed}/{task.total}",
            "{task.fields[text]}",
            console=console.err,
        )
        counts = 2 * len(str(length.steps)) + 1
        used = self.bar_width + counts + 3  # columns besides the label and the text, gaps included
        label = self.label[: max(0, console.err.width - used)]
        self.used = used + len(label)
        self.task = self.bar.add_task(label, total=length.steps, completed=state.step, text="")
        self.bar.start()

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self.rates.loss = line.loss

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.rates.add(report)
        self.bar.update(self.task, completed=state.step, text=self._text(state))

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self.evaluation = evaluation_parts(values, best)
        self.bar.update(self.task, text=self._text(state))

    def _text(self, state: TrainState) -> str:
        return fitted([*self.rates.parts(state), *self.evaluation], console.err.width - self.used)

    def on_end(self, state: TrainState) -> None:
        self.bar.stop()


class ProgressLines(Callback):
    def __init__(self, label: str) -> None:
        self.label = label

    def on_start(self, state: TrainState, length: RunLength) -> None:
        self.rates = Rates(length, state)
        self.steps = length.steps
        self.next_line = time.monotonic()

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self.rates.loss = line.loss

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.rates.add(report)
        if time.monotonic() >= self.next_line or state.step == self.steps:
            self.next_line = time.monotonic() + LINE_EVERY
            console.say(f"{self.label}: step {state.step}/{self.steps}  {self.rates.text(state)}")

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        scores = GAP.join(text for _, text in evaluation_parts(values, best))
        console.say(f"{self.label}: step {state.step}/{self.steps}  {scores}")


class NotebookBar(Callback):
    """One line of HTML below the cell, replaced in place; needs nothing but the notebook itself."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.evaluation: list[Part] = []

    def on_start(self, state: TrainState, length: RunLength) -> None:
        display = importlib.import_module("IPython.display")
        self.html = display.HTML
        self.rates, self.steps, self.next_time = Rates(length, state), length.steps, 0.0
        self.shown = display.display(self.html(self._line(state)), display_id=True)

    def on_log(self, state: TrainState, line: LogLine) -> None:
        self.rates.loss = line.loss

    def on_step(self, state: TrainState, report: StepReport) -> None:
        self.rates.add(report)
        if time.monotonic() >= self.next_time:
            self._show(state)

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        self.evaluation = evaluation_parts(values, best)
        self._show(state)

    def on_end(self, state: TrainState) -> None:
        self._show(state)

    def _show(self, state: TrainState) -> None:
        self.next_time = time.monotonic() + NOTEBOOK_EVERY
        self.shown.update(self.html(self._line(state)))

    def _line(self, state: TrainState) -> str:
        text = GAP.join(text for _, text in [*self.rates.parts(state), *self.evaluation])
        bar = f'<progress value="{state.step}" max="{self.steps}"></progress>'
        return f"<div>{escape(self.label)} {bar} {state.step}/{self.steps} {escape(text)}</div>"
