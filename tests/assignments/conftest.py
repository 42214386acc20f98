"""The scripts of an assignment as modules: they lie in a folder of their own and have everyday names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
Load = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def knowledge() -> Iterator[Load]:
    """`knowledge("dataset")` is src/dataset.py."""
    yield from _scripts(ASSIGNMENTS / "self-attention-transformers-pretraining" / "src")


@pytest.fixture(scope="module")
def bert() -> Iterator[Load]:
    """`bert("classifier")` is its classifier.py."""
    yield from _scripts(ASSIGNMENTS / "natural-language-processing-4")


def _scripts(folder: Path) -> Iterator[Load]:
    names = [path.stem for path in folder.glob("*.py")]

    def forget() -> None:
        for name in names:  # another assignment may have a model.py too, and the benchmarks an attention.py
            sys.modules.pop(name, None)

    forget()
    sys.path.insert(0, str(folder))
    yield importlib.import_module
    sys.path.remove(str(folder))
    forget()
