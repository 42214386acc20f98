"""Settings with the values to try, as a command line or a recipe writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from attnlab.config.sections import split_list


def parse_axes(value: Any) -> dict[str, list[Any]]:
    """{setting: [values]}, or the same on a command line: 'setting=1,2,4; other=a,b'."""
    if isinstance(value, str):
        parts = [part.partition("=") for part in value.split(";") if part.strip()]
        value = {name.strip(): values if equals else "" for name, equals, values in parts}
    if not isinstance(value, dict):
        raise ValueError("write 'setting: [1, 2, 4]', or --vary setting=1,2,4")
    axes = {
        str(name): values if isinstance(values, list) else split_list(values) for name, values in dotted(value).items()
    }
    for name, values in axes.items():
        if len({str(value) for value in values}) != len(values) or not values:
            raise ValueError(f"{name!r} needs at least one value and no value twice, such as {name}=1,2,4")
    return axes


def dotted(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted names: {world: {paraphrases: [...]}} becomes {world.paraphrases: [...]}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= dotted(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + str(name): value}
    return flat


def parse_choices(value: Any) -> dict[str, dict[str, Any]]:
    """{name: {setting: value}} from 'full, head:lr=1e-2:epochs=20', a list of names, or a mapping in a recipe."""
    if isinstance(value, Mapping):
        named = {str(name): dotted(_mapping(name, settings)) for name, settings in value.items()}
    else:
        parts = value if isinstance(value, list | tuple) else str(value).split(",")
        pairs = [_typed(str(part)) for part in parts if str(part).strip()]
        named = dict(pairs)
        if len(named) < len(pairs):
            raise ValueError("the same name is given twice: a comparison needs different ones")
    if "" in named:
        raise ValueError("a name is missing before ':'")
    return named


def _mapping(name: Any, settings: Any) -> dict[str, Any]:
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(f"write the settings of {name!r} as '{name}: {{optimizer.lr: 1e-3}}'")
    return dict(settings or {})


def _typed(part: str) -> tuple[str, dict[str, Any]]:
    """'head:lr=1e-2:epochs=20'."""
    name, *given = (text.strip() for text in part.split(":"))
    settings: dict[str, Any] = {}
    for text in given:
        setting, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r} is no setting of {name!r}: write '{name}:lr=1e-3'")
        settings[setting.strip()] = value.strip()
    return name, settings


Settings = dict[str, Any]
"""By dotted name."""
NEAR = 0.05  # of a range: a best value this close to its end lies on the edge


@dataclass(frozen=True)
class Choices:
    """A setting with values to choose from."""

    values: tuple[Any, ...]

    @property
    def numeric(self) -> bool:
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)

    @property
    def ordered(self) -> list[Any]:
        return sorted(self.values) if self.numeric else list(self.values)

    def edge(self, value: Any) -> str | None:
        if not self.numeric or len(self.values) < 2:
            return None
        return {min(self.values): "lowest", max(self.values): "highest"}.get(value)

    def place(self, value: Any) -> float:
        """Between 0 and 1, by its rank."""
        values = self.ordered
        return (values.index(value) + 0.5) / len(values) if value in values else 0.5

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
        """0 at the low end, 1 at the high end."""
        scale = math.log if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))

    def edge(self, value: Any) -> str | None:
        place = self.place(value)
        return "lowest" if place <= NEAR else "highest" if place >= 1 - NEAR else None

    def __str__(self) -> str:
        return f"{show(self.low)} to {show(self.high)}" + (", on a log scale" if self.log else "")


Axis = Choices | Range


def varied(axes: Mapping[str, Axis]) -> list[str]:
    """The settings with more than one value."""
    return [name for name, axis in axes.items() if not isinstance(axis, Choices) or len(axis.values) > 1]


def show(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str) and value.endswith(".py"):
        return PurePath(value).stem  # a user's own attention
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The shortest end of each name that no other has: lr for optimizer.lr."""
    every = list(names)

    def shortest(name: str) -> str:
        parts = name.split(".")
        ends = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        return next(end for end in ends if sum(f".{other}".endswith(f".{end}") for other in every) == 1)

    return {name: shortest(name) for name in every}


def label_of(settings: Mapping[str, Any]) -> str:
    names = short_names(settings)
    return ", ".join(f"{names[name]}={show(value)}" for name, value in settings.items())
