"""docs/scaling.md shows what the arithmetic gives."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tables_are_those_of_the_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    page = (DOCS / "scaling.md").read_text(encoding="utf-8")
    assert importlib.import_module("scaling_tables").renewed(page) == page, "run: python docs/scaling_tables.py"
    assert "| GPT-2 medium | ddp |" in page
