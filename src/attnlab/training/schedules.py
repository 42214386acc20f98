"""Learning rates over time, as a factor between 0 and 1 of the peak.

A schedule is a function of the progress of a run and has no state to save.
Progress is counted in steps; a warm-up may be given in tokens instead.

    constant   1
    linear     1 - p
    cosine     (1 + cos πp) / 2
    wsd        1, then falling linearly over the last `decay_ratio` (warm-up, stable, decay)
    wave       (1 + cos πw) / 2, but never below `final`

p runs from 0 at the end of the warm-up to 1 at the last step; `linear`, `cosine` and `wsd` end at `final`.
w is 1 after `wave_steps` and continues to grow: the rate rises and falls again, as in minGPT after its
`final_tokens`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from attnlab.config import ScheduleSection

SHAPES: dict[str, Callable[[float, float], float]] = {
    "constant": lambda p, decay: 1.0,
    "linear": lambda p, decay: 1.0 - p,
    "cosine": lambda p, decay: 0.5 * (1.0 + math.cos(math.pi * p)),
    "wsd": lambda p, decay: min(1.0, (1.0 - p) / decay),
}


@dataclass(frozen=True)
class Schedule:
    """The factor of the learning rate for a step of a run of `steps` steps."""

    settings: ScheduleSection
    steps: int

    def __call__(self, step: int, tokens: int) -> float:
        """The factor for the next step, after `step` steps and `tokens` tokens."""
        settings = self.settings
        if settings.warmup_tokens is not None:
            # The step at which the warm-up ends is not known in advance: decay runs over the whole length.
            rise = min(1.0, (tokens + 1) / max(1, settings.warmup_tokens))
            return rise * self._shape(step, self.steps)
        warmup = self.warmup_steps
        if step < warmup:
            return (step + 1) / warmup
        return self._shape(step - warmup, self.steps - warmup)

    @property
    def warmup_steps(self) -> int:
        if self.settings.warmup_ratio is not None:
            return round(self.settings.warmup_ratio * self.steps)
        return self.settings.warmup_steps or 0

    def _shape(self, done: int, length: int) -> float:
        """The factor after `done` of the `length` steps that follow the warm-up."""
        settings = self.settings
        if settings.name == "constant":
            return 1.0
        if settings.name == "wave":
            return max(settings.final, SHAPES["cosine"](done / (settings.wave_steps or max(1, length)), 1.0))
        progress = done / max(1, length)
        # The decay of 'wsd' is a share of the whole run; here progress is counted after the warm-up.
        decay = settings.decay_ratio * self.steps / max(1, self.steps - self.warmup_steps)
        return settings.final + (1.0 - settings.final) * SHAPES[settings.name](min(1.0, progress), decay)
