"""The notebook shows the numbers that were measured, and figures a page can carry."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook"
PAGES = ("attention-comparison.md", "positions.md", "modern-shape.md")


def _tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook_tables", NOTEBOOK / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_are_the_results(page: str) -> None:
    text = (NOTEBOOK / page).read_text(encoding="utf-8")
    for table in _tables().TABLES[page]:
        assert "\n".join(table()) in text


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_is_there_and_small(page: str) -> None:
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (NOTEBOOK / page).read_text(encoding="utf-8"))
    assert named
    for figure in named:
        assert (NOTEBOOK / figure).stat().st_size <= 150_000
