"""The space a sweep searches, from what was written.

A value is stored as the job's configuration holds it, so that 1e-4 and 0.0001 are one value and one cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, get_args

from attnlab.base.errors import UserError
from attnlab.config.axes import Axis, Choices, Range, Settings
from attnlab.config.recipe import Key, find_setting, flag_of, lay_over, leaves, value_of
from attnlab.config.sections import Section
from attnlab.experiments.config import SweepConfig
from attnlab.jobs.registry import KINDS

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"^(?P<low>{NUMBER})\.\.(?P<high>{NUMBER})(?P<log>\s+log)?$")


def job_config(config: SweepConfig, settings: Mapping[str, Any]) -> Section:
    """The job's configuration with these settings, given by dotted name."""
    values = config.model_dump(exclude={"sweep"}, exclude_unset=True)
    return lay_over(KINDS[config.sweep.job].config, values, {tuple(n.split(".")): v for n, v in settings.items()})


def axes_of(config: SweepConfig) -> dict[str, Axis]:
    """The axes by the full name of their setting; an unknown setting or value is one sentence."""
    kind, axes = KINDS[config.sweep.job], dict[str, Axis]()
    if not config.sweep.vary:
        raise UserError("--vary is missing: what to search, such as --vary 'optimizer.lr=1e-4,5e-4,1e-3'.")
    for written, values in config.sweep.vary.items():
        key = find_setting(kind.config, written)
        if key == kind.seed:
            raise UserError(f"{written} cannot be searched: every cell is run with the seeds 0, 1, ... of --seeds.")
        if (name := ".".join(key)) in axes:
            raise UserError(f"{written!r} is given twice in --vary: give its values once.")
        axes[name] = _axis(config, key, name, values)
        if config.sweep.search == "grid" and isinstance(axes[name], Range):
            raise UserError(f"{name} is a range, and a grid needs values: name them, or use --search random or guided.")
    return axes


def _axis(config: SweepConfig, key: Key, name: str, values: list[Any]) -> Axis:
    match = RANGE.match(str(values[0])) if len(values) == 1 else None
    if match is None:
        choices = tuple(_value(config, key, value) for value in values)
        if len({json.dumps(value) for value in choices}) < len(choices):
            raise UserError(f"{name}: {', '.join(map(str, values))} holds the same value twice.")
        return Choices(choices)
    low, high = (_value(config, key, match[end]) for end in ("low", "high"))
    if not Choices((low, high)).numeric:
        raise UserError(f"{name} is no number: name its values instead of a range, such as {name}=a,b.")
    if low >= high:
        raise UserError(f"{name}: the range {values[0]} is empty: write the lower end first.")
    if match["log"] and low <= 0:
        raise UserError(f"{name}: a log range starts above 0, and {values[0]} does not: give a small positive end.")
    annotation = leaves(KINDS[config.sweep.job].config)[key][0].annotation
    return Range(low, high, bool(match["log"]), float not in (annotation, *get_args(annotation)))


def _value(config: SweepConfig, key: Key, written: Any) -> Any:
    try:
        return value_of(job_config(config, {".".join(key): written}), key)
    except UserError as error:  # it names the flag of the job's own command
        flag = flag_of(key, leaves(KINDS[config.sweep.job].config)[key][0])
        raise UserError(f"--vary: {str(error).removeprefix(f'{flag}: ')}") from None


def grid(axes: Mapping[str, Axis]) -> Iterator[Settings]:
    """Every value with every other."""
    choices = [axis.values for axis in axes.values() if isinstance(axis, Choices)]
    for values in product(*choices):
        yield dict(zip(axes, values, strict=True))


def identity(settings: Mapping[str, Any]) -> str:
    """Two cells with the same settings are one."""
    return json.dumps(dict(settings), sort_keys=True)
