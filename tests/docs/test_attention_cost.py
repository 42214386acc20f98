"""docs/notebook/attention-cost.md shows what was measured."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from attnlab.attention import VARIANTS

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook"
PAGE = (NOTEBOOK / "attention-cost.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((NOTEBOOK / "data" / "attention-cost.json").read_text(encoding="utf-8"))
    return found


def test_the_tables_are_those_of_the_results(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cells = importlib.import_module("attention_cells").from_json(results["sides"])
    assert importlib.import_module("attention_report").tables(cells).strip() in PAGE


def test_every_variant_was_measured_as_it_is_promised_now(results: dict[str, Any]) -> None:
    measured = {side["name"]: (side["time"], side["memory"]) for side in results["sides"] if not side["peer"]}
    assert measured == {v.name: (v.time, v.memory) for v in VARIANTS.values()}


def test_what_promises_to_be_linear_was_found_linear(results: dict[str, Any]) -> None:
    linear = {name: power for name, power in results["exponents"].items() if power["time_promised"] == 1}
    assert linear
    for name, power in linear.items():
        assert power["time"] <= 1.15, name
        assert power["memory"] <= 1.05, name
    low, high = (f"T^{pick(power['time'] for power in linear.values()):.2f}" for pick in (min, max))
    assert f"{low} to {high} in time" in PAGE


def test_the_figure_is_there_and_small() -> None:
    for figure in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE):
        assert (NOTEBOOK / figure).stat().st_size <= 150_000
