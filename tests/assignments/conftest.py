"""The scripts of an assignment as modules: they lie in a folder of their own and have everyday names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

KNOWLEDGE = Path(__file__).parents[2] / "assignments" / "knowledge"


@pytest.fixture(scope="module")
def knowledge() -> Iterator[Callable[[str], ModuleType]]:
    """`knowledge("dataset")` is assignments/knowledge/src/dataset.py."""
    names = [path.stem for path in (KNOWLEDGE / "src").glob("*.py")]
    sys.path.insert(0, str(KNOWLEDGE / "src"))
    yield importlib.import_module
    sys.path.remove(str(KNOWLEDGE / "src"))
    for name in names:  # another assignment may have a model.py too
        sys.modules.pop(name, None)
