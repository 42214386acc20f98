"""Flags generated from a configuration's fields, so that a setting is written down once.

`with_flags(PretrainConfig)` gives a command function one option per leaf, grouped by topic, with the field's
description as help; the function receives the flags that were typed, by path. Of a section that names its common
settings, the others appear with --help-all only.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import typer
from pydantic import create_model
from pydantic.fields import FieldInfo
from rich.markup import escape

from attnlab.base import trust
from attnlab.config.recipe import Key, flag_of, leaves, value_of
from attnlab.config.sections import Section

METAVARS = {int: "INT", float: "NUMBER", str: "TEXT"}
Leaf = tuple[FieldInfo, type[Section]]


def with_flags(config: type[Section], *parts: type[Section]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate `command(flags, ...)`: it gets every leaf of `config` and of `parts` as an option."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        settings: dict[Key, Leaf] = {}
        defaults: dict[Key, Any] = {}
        for owner in (config, *parts):
            settings |= leaves(owner)
            default = owner()
            defaults |= {key: value_of(default, key) for key in leaves(owner)}
        keys = {parameter_name(key): key for key in settings}
        names = [flag_of(key, field) for key, (field, _) in settings.items()]
        assert len(names) == len(set(names)), f"two settings of {config.__name__} share a flag"

        @wraps(command)
        def with_options(*args: Any, **kwargs: Any) -> Any:
            values = {key: kwargs.pop(name) for name, key in keys.items()}
            flags: dict[Key, Any] = {key: value for key, value in values.items() if value is not None}
            for key, value in flags.items():
                allow_typed(f"{key[-1]}={value}")
            return command(flags, *args, **kwargs)

        written = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        ordered = sorted(settings, key=lambda key: key[0] in config.listed_last)
        generated = [_parameter(key, settings[key], defaults[key]) for key in ordered]
        parameters = sorted([*written, *generated], key=lambda parameter: parameter.kind)
        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_options

    return decorate


def allow_typed(setting: str) -> None:
    """Allow the files with attention that the user typed: --attention mine.py, --vary attention=vanilla,mine.py."""
    if ".py" in setting and re.search(r"\battention\s*=", setting):
        trust.allow_named(*re.split(r"[=,;:\s]+", setting))


def part_of(config: type[Section], topic: str, *names: str) -> type[Section]:
    """Some settings of a configuration, by their dotted names, under another topic: flags for a command."""
    base: Any = type("Part", (Section,), {"topic": topic, "__annotations__": {"topic": ClassVar[str]}})
    sections: dict[str, dict[str, Any]] = {}
    for name in names:
        section, setting = name.split(".")
        field = leaves(config)[section, setting][0]
        sections.setdefault(section, {})[setting] = (field.annotation, field)
    models = {name: create_model(name, __base__=base, **fields) for name, fields in sections.items()}
    whole: dict[str, Any] = {name: (section, section()) for name, section in models.items()}
    return create_model("Parts", __base__=Section, **whole)


def parameter_name(key: Key) -> str:
    return "__".join(key)


def _parameter(key: Key, leaf: Leaf, default: Any) -> inspect.Parameter:
    field, section = leaf
    flag = flag_of(key, field)
    is_switch = field.annotation is bool or bool in get_args(field.annotation)
    info = typer.Option(
        f"{flag}/--no-{flag[2:]}" if is_switch else flag,
        help=escape(f"{field.description} {_default_text(flag, field, default)}".strip()),
        rich_help_panel=section.topic,
        metavar=None if is_switch else _metavar(field),
        hidden=section.common is not None and key[-1] not in section.common,
    )
    annotation: Any = Annotated[bool | None, info] if is_switch else Annotated[str | None, info]
    return inspect.Parameter(parameter_name(key), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _default_text(flag: str, field: FieldInfo, default: Any) -> str:
    if default in (None, "", {}, []) or "(default" in (field.description or ""):
        return ""
    shown = {True: f"yes; off: --no-{flag[2:]}", False: "no"}[default] if isinstance(default, bool) else default
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
