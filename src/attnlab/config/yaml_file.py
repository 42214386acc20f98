"""A YAML file as plain values, with the file and line of every key.

Aliases repeat a part of a file: nine short lines can stand for a billion values. What they repeat is counted, without
building it, before anything is read: a file may have LONGEST characters in all and be DEEPEST levels deep.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from attnlab.base.errors import UserError, first_line

Key = tuple[str, ...]
FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, where it is installed
LONGEST = 1_000_000
DEEPEST = 50


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[Key, str]]:
    """A YAML file as plain values, and the file and line of every key."""
    text = _read(path)
    try:
        with suppress(yaml.YAMLError):  # raised again, in clearer words
            _check_size(path, text)
        node = _compose(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: invalid YAML: {error.problem}.") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: invalid YAML: {' '.join(str(error).split())}") from None
    if node is None:
        return {}, {}
    if not isinstance(node, yaml.MappingNode):
        raise UserError(f"{path}, line 1: expected 'key: value' lines.")
    origins: dict[Key, str] = {}
    return _plain(node, path, (), origins), origins


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(4 * LONGEST)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{path}: the recipe cannot be read: {reason}.") from None
    if len(text) > LONGEST:
        raise UserError(f"{path} is longer than the {LONGEST:,} characters that a recipe may have.")
    return text


def _check_size(path: Path, text: str) -> None:
    """Raise for nesting that is too deep, an anchor that contains itself, or too much text once it is repeated."""
    sizes: dict[str, int] = {}  # in characters, by anchor
    open_parts: list[tuple[str | None, int]] = [(None, 0)]  # anchor and size so far, the innermost last
    for event in yaml.parse(text, Loader=FAST_LOADER):
        where = f"{path}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.CollectionStartEvent):
            open_parts.append((event.anchor, 1))
            if len(open_parts) > DEEPEST:
                raise UserError(f"{where}: nested more than {DEEPEST} levels deep.")
            continue
        if isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, len(event.value) + 1
        elif isinstance(event, yaml.AliasEvent):
            if any(event.anchor == anchor for anchor, _ in open_parts):
                raise UserError(f"{where}: the anchor '&{event.anchor}' contains itself.")
            anchor, size = None, sizes.get(event.anchor or "", 1)  # the composer refuses an unknown one
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_parts.pop()
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        outer, before = open_parts[-1]
        open_parts[-1] = (outer, before + size)
        if before + size > LONGEST:
            raise UserError(f"{where}: with what its aliases repeat, the file has more than {LONGEST:,} characters.")


def _compose(text: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=FAST_LOADER)
    except yaml.YAMLError:
        node = yaml.compose(text, Loader=yaml.SafeLoader)  # raises the clearer message
    return node


def _plain(node: yaml.MappingNode, path: Path, prefix: Key, origins: dict[Key, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        where = f"{path}, line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, yaml.ScalarNode):
            raise UserError(f"{where}: a key must be a word, not a list or a group.")
        name = key_node.value
        if name in values:
            raise UserError(f"{where}: {name!r} is given twice: remove one of them.")
        origins[(*prefix, name)] = where
        if isinstance(value_node, yaml.MappingNode):
            values[name] = _plain(value_node, path, (*prefix, name), origins)
        else:
            values[name] = _construct(value_node, where)
    return values


def _construct(node: yaml.Node, where: str) -> Any:
    """The value of a node, from the safe loader, which constructs plain data only."""
    if isinstance(node, yaml.ScalarNode) and ":" in node.value and node.tag.endswith((":int", ":float")):
        return node.value  # a time of day, which YAML would read as a number in base 60
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # a date that does not exist, 5,000 digits
        if isinstance(node, yaml.ScalarNode):
            return node.value
        raise UserError(f"{where}: a value cannot be read: {first_line(error)}.") from None
    finally:
        loader.dispose()
