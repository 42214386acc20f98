"""Settings with the values to try, as a command line or a recipe writes them."""

from __future__ import annotations

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
