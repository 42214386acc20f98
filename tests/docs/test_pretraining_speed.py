"""docs/notebook/pretraining-speed.md shows what was measured."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook"


def test_the_tables_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    found = json.loads((NOTEBOOK / "data" / "pretraining-speed.json").read_text(encoding="utf-8"))
    page = (NOTEBOOK / "pretraining-speed.md").read_text(encoding="utf-8")
    assert importlib.import_module("pretraining").tables(found).strip() in page
