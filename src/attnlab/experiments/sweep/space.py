"""The space a sweep searches: an axis a setting, each with values to choose from or a range.

A value stands here as the job's configuration holds it, so that 1e-4 and 0.0001 are one value and one cell.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from attnlab.base.errors import UserError
from attnlab.config import Section, find_setting, lay_over, leaves, value_of
from attnlab.config.recipe import Key, flag_of
from attnlab.jobs.registry import config_of
from attnlab.jobs.several import seed_key

Settings = dict[str, Any]  # by dotted name
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"^(?P<low>{NUMBER})\.\.(?P<high>{NUMBER})(?P<log>\s+log)?$")
NEAR = 0.05  # of a range: a best value this close to its end lies on the edge


@dataclass(frozen=True)
class Choices:
    """A setting with values to choose from."""

    values: tuple[Any, ...]

    @property
    def numeric(self) -> bool:
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    def edge(self, value: Any) -> str | None:
        if not self.numeric or len(self.values) < 2:
            return None
        return {min(self.values): "lowest", max(self.values): "highest"}.get(value)

    def __str__(self) -> str:
        return ", ".join(map(show, self.values))


@dataclass(frozen=True)
class Range:
    """A setting that is a number between two others."""

    low: float
    high: float
    log: bool
    whole: bool

    numeric = True

    def place(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high."""
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def edge(self, value: Any) -> str | None:
        place = self.place(value)
        return "lowest" if place <= NEAR else "highest" if place >= 1 - NEAR else None

    def __str__(self) -> str:
        return f"{show(self.low)} to {show(self.high)}" + (", on a log scale" if self.log else "")


Axis = Choices | Range


def show(value: Any) -> str:
    """A value as it stands in a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def axes_of(config: Any) -> dict[str, Axis]:
    """The axes by the full name of their setting; what is no setting or no value of it is one sentence."""
    job, axes = config.sweep.job, {}
    if not config.sweep.vary:
        raise UserError("--vary is needed: what to search, such as --vary 'optimizer.lr=1e-4,5e-4,1e-3'.")
    for written, values in config.sweep.vary.items():
        key = find_setting(config_of(job), written)
        if key == seed_key(job):
            raise UserError(f"{written} is not searched over: every cell is run with the seeds 0, 1, ... of --seeds.")
        if (name := ".".join(key)) in axes:
            raise UserError(f"{written!r} stands twice in --vary: give its values once.")
        axes[name] = _axis(config, key, name, values)
        if config.sweep.search == "grid" and isinstance(axes[name], Range):
            raise UserError(f"{name} is a range, and a grid needs values: name them, or use --search random or guided.")
    return axes


def _axis(config: Any, key: Key, name: str, values: list[Any]) -> Axis:
    found = RANGE.match(str(values[0])) if len(values) == 1 else None
    if found is None:
        kept = tuple(_value(config, key, value) for value in values)
        if len({json.dumps(value) for value in kept}) < len(kept):
            raise UserError(f"{name}: {', '.join(map(str, values))} holds the same value twice.")
        return Choices(kept)
    ends = [_value(config, key, found[end]) for end in ("low", "high")]
    if not Choices(tuple(ends)).numeric:
        raise UserError(f"{name} is no number: name its values instead of a range, such as {name}=a,b.")
    low, high = ends
    if low >= high:
        raise UserError(f"{name}: the range {values[0]} is upside down or empty: write the lower end first.")
    if found["log"] and low <= 0:
        raise UserError(f"{name}: a log range starts above 0, and {values[0]} does not: give it a small positive end.")
    annotation = leaves(config_of(config.sweep.job))[key][0].annotation
    return Range(low, high, bool(found["log"]), float not in (annotation, *get_args(annotation)))


def _value(config: Any, key: Key, written: Any) -> Any:
    try:
        return value_of(job_config(config, {".".join(key): written}), key)
    except UserError as error:  # it names the flag of the job's own command
        flag = flag_of(key, leaves(config_of(config.sweep.job))[key][0])
        raise UserError(f"--vary: {str(error).removeprefix(f'{flag}: ')}") from None


def job_config(config: Any, settings: Mapping[str, Any]) -> Section:
    """The job's configuration with these settings in their place."""
    told = config.model_dump(exclude={"sweep"}, exclude_unset=True)
    placed = {tuple(name.split(".")): value for name, value in settings.items()}
    made: Section = lay_over(config_of(config.sweep.job), told, placed)
    return made


def grid(axes: Mapping[str, Axis]) -> Iterator[Settings]:
    """Every value with every other."""
    every = [axis.values for axis in axes.values() if isinstance(axis, Choices)]
    for values in product(*every):
        yield dict(zip(axes, values, strict=True))


def identity(settings: Mapping[str, Any]) -> str:
    """Two cells with the same settings are one."""
    return json.dumps(dict(settings), sort_keys=True)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The end of each name that no other has: lr for optimizer.lr."""
    known = list(names)

    def shortest(name: str) -> str:
        parts = name.split(".")
        ends = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        return next(end for end in ends if sum(f".{other}".endswith(f".{end}") for other in known) == 1)

    return {name: shortest(name) for name in known}


def label_of(settings: Mapping[str, Any]) -> str:
    names = short_names(settings)
    return ", ".join(f"{names[name]}={show(value)}" for name, value in settings.items())
