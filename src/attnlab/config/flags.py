"""Flags generated from the fields of a configuration, so a setting is written once.

`with_flags(PretrainConfig)` gives a command function one option per leaf, grouped by topic, with the field's
description as help; the function receives the given flags by their path.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import typer
from pydantic import create_model
from pydantic.fields import FieldInfo

from attnlab.config.recipe import Key, default_of, flag_of, leaves
from attnlab.config.sections import Section

METAVARS = {int: "INT", float: "NUMBER", str: "TEXT"}


def with_flags(config: type[Section], *parts: type[Section]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate `command(flags, ...)`: it gets every leaf of `config` and of `parts` as an option."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        owners = {key: owner for owner in (config, *parts) for key in leaves(owner)}
        options = {parameter_name(key): key for key in owners}
        names = [flag_of(key, leaves(owner)[key][0]) for key, owner in owners.items()]
        assert len(names) == len(set(names)), f"two settings of {config.__name__} share a flag"

        @wraps(command)
        def with_options(*args: Any, **kwargs: Any) -> Any:
            given = {key: kwargs.pop(name) for name, key in options.items()}
            flags: dict[Key, Any] = {key: value for key, value in given.items() if value is not None}
            return command(flags, *args, **kwargs)

        command_parameters = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        inherited = set(getattr(config.__bases__[0], "model_fields", {}))
        ordered = sorted(owners.items(), key=lambda leaf: leaf[0][0] in inherited)  # its own first
        generated = [_parameter(key, leaves(owner)[key], default_of(owner, key)) for key, owner in ordered]
        parameters = sorted([*command_parameters, *generated], key=lambda parameter: parameter.kind)
        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_options

    return decorate


def part_of(config: type[Section], topic: str, *names: str) -> type[Section]:
    """Some settings of a configuration, by their dotted names, under their own topic: flags for a command."""
    base: Any = type("Part", (Section,), {"topic": topic, "__annotations__": {"topic": ClassVar[str]}})
    sections: dict[str, dict[str, Any]] = {}
    for name in names:
        section, setting = name.split(".")
        field = leaves(config)[section, setting][0]
        sections.setdefault(section, {})[setting] = (field.annotation, field)
    made = {name: create_model(name, __base__=base, **fields) for name, fields in sections.items()}
    whole: dict[str, Any] = {name: (section, section()) for name, section in made.items()}
    return create_model("Parts", __base__=Section, **whole)


def parameter_name(key: Key) -> str:
    return "__".join(key)


def _parameter(key: Key, leaf: tuple[FieldInfo, type[Section]], default: Any) -> inspect.Parameter:
    field, section = leaf
    flag = flag_of(key, field)
    help_text = f"{field.description} {_default_text(field, default)}".strip()
    if field.annotation is bool or bool in get_args(field.annotation):
        info = typer.Option(f"{flag}/--no-{flag[2:]}", help=help_text, rich_help_panel=section.topic)
        annotation: Any = Annotated[bool | None, info]
    else:
        info = typer.Option(flag, help=help_text, rich_help_panel=section.topic, metavar=_metavar(field))
        annotation = Annotated[str | None, info]
    return inspect.Parameter(parameter_name(key), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _default_text(field: FieldInfo, default: Any) -> str:
    if default in (None, "", {}, []) or "(default" in (field.description or ""):
        return ""
    shown = {True: "yes", False: "no"}[default] if isinstance(default, bool) else default
    return f"(default: {shown})"


def _metavar(field: FieldInfo) -> str:
    kinds = get_args(field.annotation) or (field.annotation,)
    shown = []
    for kind in kinds:
        if get_origin(kind) is Literal:
            shown += [str(choice) for choice in get_args(kind)]
        elif isinstance(kind, str):
            shown.append(kind)
        elif kind in METAVARS:
            shown.append(METAVARS[kind])
    return "|".join(shown) or "TEXT"
