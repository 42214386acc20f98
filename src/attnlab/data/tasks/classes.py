"""From the labels in a file (whole numbers, words, true and false) to classes counted from 0."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from attnlab.base.errors import UserError

_WHOLE = re.compile(r"-?\d+")


def label_word(value: Any) -> str | None:
    """A label as a word: 1, 1.0 and "1" are the same, so are true and "True"; None for what is no label."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if not isinstance(value, str) or not value.strip():
        return None
    word = value.strip().removesuffix(".0") if re.fullmatch(r"\s*-?\d+\.0\s*", value) else value.strip()
    return word.lower() if word.lower() in ("true", "false") else word


def find_classes(words: Collection[str]) -> dict[str, int]:
    """The classes among the labels of a file: numbers by size, words by the alphabet, false before true."""
    numbers = all(_WHOLE.fullmatch(word) for word in words)
    return {word: place for place, word in enumerate(sorted(set(words), key=int if numbers else None))}


def named_classes(words: Collection[str], names: Sequence[str], where: str) -> dict[str, int]:
    """Labels to the places of classes whose names are given: by name, or counted from 0 or from 1."""
    by_name = {name: place for place, name in enumerate(names)}
    if set(words) & by_name.keys() or not words:
        return by_name
    if set(words) <= {"false", "true"} and len(names) == 2:
        return {"false": 0, "true": 1}
    if not all(_WHOLE.fullmatch(word) for word in words):
        return by_name
    first = 0 if "0" in words else 1 if str(len(names)) in words else None
    if first is None:
        raise UserError(
            f"{where}: the labels {', '.join(sorted(set(words), key=int))} may count the {len(names)} classes from 0 "
            "or from 1: write the names in the file."
        )
    return {str(place + first): place for place in range(len(names))}
