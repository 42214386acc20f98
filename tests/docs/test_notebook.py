"""The notebook shows the numbers that were measured, and figures a page can carry."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook"
PAGES = (
    "attention-comparison.md",
    "positions.md",
    "modern-shape.md",
    "paraphrases.md",
    "birthplaces.md",
    "classification.md",
    "few-labels.md",
    "unseen-names.md",
)


def _tables() -> dict[str, list[Callable[[], Iterable[str]]]]:
    """By page; the birthplaces have a file of their own."""
    birthplaces = _module("birthplaces")
    own = [lambda: birthplaces.targets(birthplaces.load()), lambda: birthplaces.ablations(birthplaces.load())]
    return _module("tables").TABLES | {"birthplaces.md": own, "unseen-names.md": [_module("unseen_names").table]}


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"notebook_{name}", NOTEBOOK / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_are_the_results(page: str) -> None:
    text = (NOTEBOOK / page).read_text(encoding="utf-8")
    for table in _tables()[page]:
        assert "\n".join(table()) in text


def test_the_page_of_induction_heads_is_what_its_script_writes() -> None:
    script = _module("induction_heads")
    page = script.PAGE.read_text(encoding="utf-8")
    assert script.BLOCK.search(page), "the place of the results is missing"
    assert script.renewed(page, script.load()) == page, "run: python docs/notebook/induction_heads.py"


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_is_there_and_small(page: str) -> None:
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (NOTEBOOK / page).read_text(encoding="utf-8"))
    assert named
    for figure in named:
        assert (NOTEBOOK / figure).stat().st_size <= 150_000
