"""A classifier that predicts one class for nearly every input: detected and reported during training."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.stats.scores import Scores
from attnlab.training.callbacks import Callback, RunLength, TrainState

RATE_CUT = 1 / 3
TRIES = 3


class Collapsed(RunFailed):
    """The classifier predicts one class for nearly every input."""


def sentence(scores: Scores, classes: Sequence[str]) -> str:
    """A report with the numbers, without a final period."""
    place, share = scores.favourite
    return (
        f"the classifier has collapsed: it predicts {classes[place]!r} for {share:.1%} of dev, and its accuracy, "
        f"{scores.accuracy:.1%}, is that of always predicting the most common class ({scores.majority:.1%})"
    )


def likely_cause(rate: float, warmup: bool, few_learn: bool) -> str:
    """The usual cause of a collapse with these settings."""
    if few_learn:
        return "likely cause: too few steps or too low a learning rate for the few weights that learn"
    if not warmup:
        return f"likely cause: no warm-up before a learning rate of {rate:g} (--warmup-ratio 0.1)"
    return f"likely cause: the learning rate, {rate:g}, is too high for this model, or far too low"


class CollapseWatch(Callback):
    """Reports a collapse that is more than a slow start: after an epoch, or at two consecutive evaluations."""

    def __init__(self, classes: Sequence[str], cause: str, on_collapse: str) -> None:
        self.classes, self.cause, self.on_collapse = classes, cause, on_collapse
        self.last: Scores | None = None
        """The scores of the last evaluation, set by it: a callback receives only a summary."""
        self.consecutive, self.warned, self.steps_per_epoch = 0, False, 1.0

    def on_start(self, state: TrainState, length: RunLength) -> None:
        self.steps_per_epoch = length.steps_per_epoch

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        if self.last is None or not self.last.collapsed:
            self.consecutive = 0
            return
        self.consecutive += 1
        if self.consecutive < 2 and state.step < self.steps_per_epoch:
            return
        message = f"{sentence(self.last, self.classes)}; {self.cause}."
        if self.on_collapse != "say":
            raise Collapsed(message)
        if not self.warned:
            console.warn(f"after step {state.step}, {message}")
            self.warned = True
