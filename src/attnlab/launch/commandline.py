"""The command that was typed, rebuilt from its parsed options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from attnlab.base.children import MODULE
from attnlab.config.flags import parameter_name
from attnlab.config.recipe import leaves
from attnlab.launch.config import ArrayLaunchConfig

PROGRAM = [*MODULE, "attnlab"]


def typed_command(context: typer.Context, *without: str) -> list[str]:
    """`attnlab COMMAND --options` in this Python, without the options of the launch and those named in `without`."""
    dropped = {parameter_name(key) for key in leaves(ArrayLaunchConfig)} | {*without}
    words = [*PROGRAM]
    if context.parent is not None:
        words += _options(context.parent, set())
    return [*words, str(context.info_name), *_options(context, dropped)]


def _options(context: Any, dropped: set[str]) -> Iterator[str]:
    """The given parameters, as they would be typed."""
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in dropped or source is None or source.name != "COMMANDLINE":
            continue
        yield from _words(parameter, context.params[name])


def _words(parameter: Any, value: Any) -> Iterator[str]:
    if parameter.param_type_name == "argument":
        yield str(value)
    elif parameter.is_flag:
        yield parameter.opts[0] if value else parameter.secondary_opts[0]
    else:
        for item in value if parameter.multiple else [value]:
            yield f"{parameter.opts[0]}={item}"
