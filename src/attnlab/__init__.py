"""Attention Lab: take attention apart, put Transformers together, train and compare them honestly.

    import attnlab as lab

    run = lab.train(lab.GPT(attention="linear", layers=2), "text.txt", steps=200)
    run.sample("The ")

Importing the package is cheap: torch and the rest are loaded when a name below is first used. See docs/python.md.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from attnlab.version import __version__

if TYPE_CHECKING:
    from attnlab import explore as explore
    from attnlab.api.classifier import Classifier as Classifier
    from attnlab.api.evaluate import Evaluation as Evaluation
    from attnlab.api.evaluate import evaluate as evaluate
    from attnlab.api.experiments import compare as compare
    from attnlab.api.experiments import sweep as sweep
    from attnlab.api.gpt import GPT as GPT
    from attnlab.api.interpret import ablate as ablate
    from attnlab.api.interpret import head_history as head_history
    from attnlab.api.interpret import heads as heads
    from attnlab.api.interpret import inspect as inspect
    from attnlab.api.interpret import lens as lens
    from attnlab.api.interpret import removal_curve as removal_curve
    from attnlab.api.interpret import trace as trace
    from attnlab.api.listing import runs as runs
    from attnlab.api.mixers import audit as audit
    from attnlab.api.mixers import check as check
    from attnlab.api.run import Run as Run
    from attnlab.api.run import load as load
    from attnlab.api.table import Table as Table
    from attnlab.api.train import finetune as finetune
    from attnlab.api.train import knowledge as knowledge
    from attnlab.api.train import pretrain as pretrain
    from attnlab.api.train import train as train
    from attnlab.base.errors import UserError as UserError

NAMES: dict[str, str] = {
    "Classifier": "attnlab.api.classifier",
    "Evaluation": "attnlab.api.evaluate",
    "GPT": "attnlab.api.gpt",
    "Run": "attnlab.api.run",
    "Table": "attnlab.api.table",
    "UserError": "attnlab.base.errors",
    "ablate": "attnlab.api.interpret",
    "audit": "attnlab.api.mixers",
    "check": "attnlab.api.mixers",
    "compare": "attnlab.api.experiments",
    "evaluate": "attnlab.api.evaluate",
    "explore": "attnlab",
    "finetune": "attnlab.api.train",
    "head_history": "attnlab.api.interpret",
    "heads": "attnlab.api.interpret",
    "inspect": "attnlab.api.interpret",
    "knowledge": "attnlab.api.train",
    "lens": "attnlab.api.interpret",
    "load": "attnlab.api.run",
    "pretrain": "attnlab.api.train",
    "removal_curve": "attnlab.api.interpret",
    "runs": "attnlab.api.listing",
    "sweep": "attnlab.api.experiments",
    "trace": "attnlab.api.interpret",
    "train": "attnlab.api.train",
}
"""The names of the API, each with the module that defines it."""
PACKAGES = ("check", "explore", "runs")
"""Names of the API that are packages as well."""

__all__ = ["__version__", *NAMES]


class _CallablePackage(ModuleType):
    """A package that is also a function of the API: `lab.runs()` lists what `attnlab.runs` reads."""

    def __call__(self, *args: Any, **settings: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module(NAMES[name]), name)(*args, **settings)


class _Lab(ModuleType):
    """This package. An import binds a package to its name here, in place of the function: it must do for both."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in PACKAGES and NAMES[name] != __name__ and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Lab


def __getattr__(name: str) -> object:
    if name not in NAMES:
        raise AttributeError(f"module 'attnlab' has no attribute {name!r}")
    if name in PACKAGES:
        return importlib.import_module(f"attnlab.{name}")
    return getattr(importlib.import_module(NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
