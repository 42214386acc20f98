"""A classifier that says the same for nearly every input: found while it trains, said plainly, tried again if asked."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.stats.scores import Scores
from attnlab.training.callbacks import Callback, RunLength, TrainState

RATE_CUT = 1 / 3
TRIES = 3


class Collapsed(RunFailed):
    """Training gave a classifier that tells nothing apart."""


def sentence(scores: Scores, classes: Sequence[str]) -> str:
    """What happened, in numbers."""
    place, share = scores.favourite
    return (
        f"the classifier has collapsed: it says {classes[place]!r} for {share:.1%} of dev, and its accuracy, "
        f"{scores.accuracy:.1%}, is that of always saying the most common class ({scores.majority:.1%})"
    )


def likely_cause(rate: float, warmup: bool, few_learn: bool) -> str:
    """What usually lies behind it."""
    if few_learn:
        return "likely cause: too few steps or too low a learning rate for the few weights that learn"
    if not warmup:
        return f"likely cause: no warm-up before a learning rate of {rate:g} (--warmup-ratio 0.1)"
    return f"likely cause: the learning rate, {rate:g}, is too high for this model, or far too low to move it"


class CollapseWatch(Callback):
    """Says it once it is more than a slow start: after an epoch, or at two evaluations in a row."""

    def __init__(self, classes: Sequence[str], cause: str, act: str) -> None:
        self.classes, self.cause, self.act = classes, cause, act
        self.last: Scores | None = None
        """What the evaluation just made found: it tells, since a callback sees numbers only."""
        self.row, self.said, self.steps_per_epoch = 0, False, 1.0

    def on_start(self, state: TrainState, outlook: RunLength) -> None:
        self.steps_per_epoch = outlook.steps_per_epoch

    def on_evaluate(self, state: TrainState, values: dict[str, float], best: bool) -> None:
        if self.last is None or not self.last.collapsed:
            self.row = 0
            return
        self.row += 1
        if self.row < 2 and state.step < self.steps_per_epoch:
            return
        found = f"{sentence(self.last, self.classes)}; {self.cause}."
        if self.act != "say":
            raise Collapsed(found)
        if not self.said:
            console.warn(f"after step {state.step}, {found}")
            self.said = True
