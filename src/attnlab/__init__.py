"""Attention Lab: take attention apart, put Transformers together, train and compare them honestly.

    import attnlab as lab

Importing the package is cheap: torch and the rest are loaded when a name below is first used.
"""

from __future__ import annotations

import importlib

from attnlab.version import __version__

NAMES: dict[str, str] = {"Classifier": "attnlab.api.classifier"}
"""The names of the API, each with the module that defines it."""

__all__ = ["__version__", *NAMES]


def __getattr__(name: str) -> object:
    if name not in NAMES:
        raise AttributeError(f"module 'attnlab' has no attribute {name!r}")
    return getattr(importlib.import_module(NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES])
