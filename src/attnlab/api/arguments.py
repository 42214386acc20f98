"""Wrong arguments of a call as one sentence, before anything is read or computed."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

from attnlab.base.errors import UserError, unknown

P = ParamSpec("P")
R = TypeVar("R")

LEAST = {"seed": 0, "number": 1, "most": 1, "draws": 1, "window": 1, "unseen_names": 0, "vocabulary_size": 1}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which refuses unknown settings and values of another type than its annotations name.

    Types that the table below does not have are left to the function.
    """
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name != "self"]

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in names:
                raise UserError(unknown("setting", name, names))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UserError(f"{function.__name__}: {error}.") from None
        for name, value in bound.arguments.items():
            _check(name, value, str(signature.parameters[name].annotation))
        return function(*args, **kwargs)

    return call


def _check(name: str, value: object, annotation: str) -> None:
    kinds = annotation.split(" | ")
    if all(kind in ACCEPTED for kind in kinds):
        if not any(ACCEPTED[kind][1](value) for kind in kinds):
            expected = " or ".join(ACCEPTED[kind][0] for kind in kinds if kind != "None")
            raise UserError(f"{name}: expected {expected}, got {value!r:.60}.")
        if name in LEAST and isinstance(value, Integral) and value < LEAST[name]:
            raise UserError(f"{name} must be at least {LEAST[name]}, got {value}.")


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not _is_bool(value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not _is_bool(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _are_texts(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(each, str) for each in value)


ACCEPTED: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "None": ("None", lambda value: value is None),
    "bool": ("True or False", _is_bool),
    "int": ("a whole number", _is_whole),
    "float": ("a number", _is_number),
    "str": ("a text", _is_text),
    "Source": ("a path or a run", is_path),
    "Sequence[str]": ("a list of texts", _are_texts),
}
"""What each annotation accepts, in words and as a test."""
