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
    """`knowledge("dataset")` is assignments/knowledge/src/dataset.py."""
    yield from _scripts(ASSIGNMENTS / "knowledge" / "src")


@pytest.fixture(scope="module")
def bert() -> Iterator[Load]:
    """`bert("classifier")` is assignments/bert/classifier.py."""
    yield from _scripts(ASSIGNMENTS / "bert")


def _scripts(folder: Path) -> Iterator[Load]:
    sys.path.insert(0, str(folder))
    yield importlib.import_module
    sys.path.remove(str(folder))
    for path in folder.glob("*.py"):  # another assignment may have a model.py too
        sys.modules.pop(path.stem, None)
