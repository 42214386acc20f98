"""What may be added to a sweep that was run: values of a grid, seeds, trials, time."""

from __future__ import annotations

from typing import Any

from attnlab.base.errors import UserError
from attnlab.experiments.sweep.space import Choices, axes_of

GROWS = ("vary", "seeds", "trials", "seconds")


def grown(saved: Any, asked: Any) -> Any:
    """The saved configuration with what `asked` adds to it; nothing is ever taken away."""
    config = saved.model_copy(deep=True)
    before, now = saved.sweep, asked.sweep
    if now.vary:
        config.sweep.vary = _more_values(saved, asked)
    config.sweep.seeds = max(before.seeds, now.seeds)
    if now.trials is not None:
        config.sweep.trials = max(before.trials or 0, now.trials)
    if now.seconds is not None:
        config.sweep.seconds = now.seconds
    return config


def _more_values(saved: Any, asked: Any) -> dict[str, list[Any]]:
    had, wanted = axes_of(saved), axes_of(asked)
    if strange := [name for name in wanted if name not in had]:
        raise UserError(f"a resumed sweep keeps its settings ({', '.join(had)}): {strange[0]} is not among them.")
    written = dict(zip(had, saved.sweep.vary.values(), strict=True))
    for name, axis in wanted.items():
        if saved.sweep.search != "grid" and axis != had[name]:
            raise UserError(f"a resumed {saved.sweep.search} search keeps its space, and {name} is {had[name]} there.")
        old = had[name]
        if isinstance(axis, Choices) and isinstance(old, Choices):
            written[name] = [*old.values, *[value for value in axis.values if value not in old.values]]
    return written
