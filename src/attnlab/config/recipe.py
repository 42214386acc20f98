"""From a YAML recipe and flags to one checked configuration; every error is one sentence.

    recipe.yaml, line 4: unknown key 'lrr' in optimizer: did you mean 'lr'?
    --batch-size: ...

The origin of each value (file and line, or flag) is kept until it has been checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from attnlab.base.errors import UserError, nearest, shown
from attnlab.config.pretrain import PretrainConfig
from attnlab.config.sections import Section
from attnlab.config.shipped import find_recipe
from attnlab.config.yaml_file import Key, read_yaml

Loaded = TypeVar("Loaded", bound=Section)

PLAIN = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", Path: "a path"}
LIMITS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"}


def leaves(config: type[Section]) -> dict[Key, tuple[FieldInfo, type[Section]]]:
    """Every leaf of a configuration by its path, with its field and its section."""
    by_key: dict[Key, tuple[FieldInfo, type[Section]]] = {}
    for name, field in config.model_fields.items():
        kind = section_of(field)
        if kind is None:
            by_key[(name,)] = (field, config)
        else:
            by_key.update({(name, *key): leaf for key, leaf in leaves(kind).items()})
    return by_key


def section_of(field: FieldInfo) -> type[Section] | None:
    """The section a field holds, or None for a leaf."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def flag_of(key: Key, field: FieldInfo) -> str:
    """The flag of a leaf: the one its field names, or its name with dashes; `--pretrain-lr` inside a part."""
    extra = field.json_schema_extra
    named = str(extra["flag"]) if isinstance(extra, dict) and "flag" in extra else f"--{key[-1]}"
    return "--" + "-".join([*key[:-2], named.removeprefix("--")]).replace("_", "-")


def load(kind: type[Loaded], recipe: Path | None, flags: Mapping[Key, Any]) -> Loaded:
    """The checked configuration of a recipe (if any), with the flags replacing its values."""
    values, origins = read_recipe(recipe) if recipe is not None else ({}, {})
    return lay_over(kind, values, flags, origins)


def lay_over(
    kind: type[Loaded], values: dict[str, Any], settings: Mapping[Key, Any], origins: dict[Key, str] | None = None
) -> Loaded:
    """The checked configuration of plain values, with some of them replaced by `settings`."""
    origins, fields = dict(origins or {}), leaves(kind)
    for key in settings:
        _drop_rivals(values, key, fields[key][1])  # only the recipe's: two flags that exclude each other are an error
    for key, value in settings.items():
        field, _ = fields[key]
        _put(values, key, _parse_none(value, field))
        origins[key] = flag_of(key, field)
    return check(kind, values, origins)


def find_setting(kind: type[Section], name: str) -> Key:
    """The leaf of a dotted name: its whole path, or an end of it that only one leaf has."""
    parts = tuple(name.strip().replace("-", "_").split("."))
    keys = leaves(kind)
    matches = [parts] if parts in keys else [key for key in keys if key[-len(parts) :] == parts]
    if len(matches) == 1:
        return matches[0]
    dotted = [".".join(key) for key in matches or keys]
    if matches:
        raise UserError(f"{name!r} is ambiguous: write one of {', '.join(dotted)}.")
    raise UserError(f"unknown setting {name!r}: did you mean {_like(name, dotted)}?")


def _like(name: str, settings: list[str]) -> str:
    """The settings with the same or a similar last name, else the nearest in spelling."""
    last = name.rpartition(".")[2].replace("-", "_")
    ends = {setting: setting.rpartition(".")[2] for setting in settings}
    close = last if last in ends.values() else nearest(last, ends.values())
    alike = [setting for setting, end in ends.items() if end == close] or [nearest(name, settings) or settings[0]]
    return " or ".join(map(repr, alike))


def check(kind: type[Loaded], values: Mapping[str, Any], origins: Mapping[Key, str] | None = None) -> Loaded:
    """Validate plain values; the first error becomes one sentence with its file and line or flag."""
    if not isinstance(values, Mapping):
        raise UserError(f"expected settings by name, got {shown(values)}.")
    try:
        return kind.model_validate(_with_defaults(kind, values))
    except ValidationError as error:
        raise UserError(_sentence(kind, error, origins or {})) from None


def _with_defaults(kind: type[Section], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with the defaults that a configuration sets for its sections, where none is given."""
    filled = dict(values)
    for name, field in kind.model_fields.items():
        section, given = section_of(field), values.get(name) or {}
        if section is None or not isinstance(given, Mapping):
            continue
        rivals = {rival for names in section.exclusive if set(names) & set(given) for rival in names}
        defaults = field.default.model_dump(exclude_unset=True)
        merged = {key: value for key, value in defaults.items() if key not in rivals} | dict(given)
        filled[name] = _with_defaults(section, merged)
    return filled


def default_of(kind: type[Section], key: Key) -> Any:
    """The default of a leaf in this configuration."""
    return value_of(kind(), key)


def value_of(config: Section, key: Key) -> Any:
    """A leaf's value."""
    value: Any = config
    for name in key:
        value = getattr(value, name)
    return value


def read_recipe(path_or_name: Path) -> tuple[dict[str, Any], dict[Key, str]]:
    """A YAML file, or a shipped recipe by its name, as plain values, and the file and line of every key."""
    return read_yaml(find_recipe(path_or_name))


def _put(values: dict[str, Any], key: Key, value: Any) -> None:
    for name in key[:-1]:
        if values.get(name) is None:
            values[name] = {}
        values = values[name]
        if not isinstance(values, dict):
            return  # a recipe's text where a group belongs, which the check refuses
    values[key[-1]] = value


def _drop_rivals(values: dict[str, Any], key: Key, section: type[Section]) -> None:
    """Remove the settings that `key` excludes: `--steps` replaces a recipe's `epochs`."""
    for name in key[:-1]:
        values = (values.get(name) if isinstance(values, dict) else None) or {}
    if not isinstance(values, dict):
        return
    for names in section.exclusive:
        if key[-1] in names:
            for rival in set(names) - {key[-1]}:
                values.pop(rival, None)


def _parse_none(value: Any, field: FieldInfo) -> Any:
    is_none = isinstance(value, str) and value.lower() == "none" and type(None) in get_args(field.annotation)
    return None if is_none else value


def _sentence(kind: type[Section], error: ValidationError, origins: Mapping[Key, str]) -> str:
    problems = error.errors()
    first = problems[0]
    location = tuple(str(part) for part in first["loc"])
    key = _known_part(kind, location)
    where = _origin(key, origins)
    more = len({_known_part(kind, tuple(str(part) for part in problem["loc"])) for problem in problems}) - 1
    rest = f" ({more} more errors.)" if more else ""
    return f"{where}{_what(kind, first, key)}{rest}"


def _known_part(kind: type[Section], location: Key) -> Key:
    """The part of a location that names a key: pydantic appends the member of a union that failed."""
    key: Key = ()
    section: type[Section] | None = kind
    for part in location:
        if section is None:
            break
        key = (*key, part)
        field = section.model_fields.get(part)
        section = section_of(field) if field is not None else None
    return key


def _origin(key: Key, origins: Mapping[Key, str]) -> str:
    for length in range(len(key), 0, -1):
        if key[:length] in origins:
            return f"{origins[key[:length]]}: "
    inside = [where for path, where in origins.items() if path[: len(key)] == key]  # the section as a whole
    return f"{', '.join(inside)}: " if inside else ""


def _what(kind: type[Section], problem: Any, key: Key) -> str:
    if problem["type"] == "extra_forbidden":
        section = kind
        for name in key[:-1]:
            section = cast(type[Section], section_of(section.model_fields[name]))
        return _unknown_key(kind, section, key)
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
        return f"{'.'.join(key)}: {message}{'' if message.endswith(('.', '?')) else '.'}"
    if problem["type"] == "missing":
        return f"{'.'.join(key)} is missing."
    return f"{'.'.join(key)} must be {_expected(kind, problem, key)}, got {shown(problem['input'])}."


def _expected(kind: type[Section], problem: Any, key: Key) -> str:
    """The expected values in plain words, with the choices of a union."""
    if problem["type"] == "model_type":
        return "a group of 'key: value' lines"
    field, _ = leaves(kind)[key]
    kinds = get_args(field.annotation) or (field.annotation,)
    words = [PLAIN[kind] for kind in kinds if kind in PLAIN]
    for kind_ in (field.annotation, *kinds):
        if get_origin(kind_) is Literal:
            words += [repr(choice) for choice in get_args(kind_)]
    limit = problem["msg"].partition("should be ")[2] if problem["type"] in LIMITS else ""
    return limit or _choices(words) or "another value"


def _choices(words: Sequence[str]) -> str:
    """a, b or c."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _unknown_key(kind: type[Section], section: type[Section], key: Key) -> str:
    name, place = key[-1], f" in {'.'.join(key[:-1])}" if len(key) > 1 else ""
    close = nearest(name, section.model_fields)
    if close:
        return f"unknown key {name!r}{place}: did you mean {close!r}?"
    elsewhere = [".".join(path) for path in leaves(kind) if path[-1] == name]
    if elsewhere:
        return f"unknown key {name!r}{place}: it belongs to {elsewhere[0]!r}."
    return f"unknown key {name!r}{place}: choose from {', '.join(section.model_fields)}."


def refuse_settings(keys: Sequence[tuple[str, ...]], config: PretrainConfig, why: str) -> None:
    """Raise, with the reason `why`, for the first of these settings that is not at its default."""
    fields = leaves(PretrainConfig)
    for key in keys:
        if (value := value_of(config, key)) != default_of(PretrainConfig, key):
            shown = "" if value is True else f" {value}"
            raise UserError(f"{flag_of(key, fields[key][0])}{shown} {why}")
