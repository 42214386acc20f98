"""Settings with the values to try, as a command line or a recipe writes them."""

from __future__ import annotations

from collections.abc import Mapping
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
