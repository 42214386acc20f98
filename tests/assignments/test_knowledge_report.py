"""The tables of the report on pretraining are those of the results beside it, and every experiment is shown."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from tests.assignments.conftest import ASSIGNMENTS

FOLDER = ASSIGNMENTS / "self-attention-transformers-pretraining"


@pytest.fixture(scope="module")
def write_up() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "write_up.py"))


def result(about: str, right: int) -> dict[str, Any]:
    return {
        "about": about,
        "variant": "vanilla",
        "seed": 0,
        "commands": ["python src/run.py pretrain vanilla wiki.txt --writing_params_path x --seed 0 --preset fast"],
        "dev": {"right": right, "total": 500, "accuracy": right / 500, "interval": [0.1, 0.2]},
        "trace": {"retrieved": {"answers": right + 3, "right": right}},
        "pretrain": {"epochs": 2, "characters": 1234567, "seconds": 90.0, "notes": [], "machine": {}},
    }


def test_the_report_shows_the_results_that_are_kept(write_up: dict[str, Any]) -> None:
    report = (FOLDER / "report.md").read_text(encoding="utf-8")
    assert write_up["filled"](report, write_up["results"]()) == report, "run: python write_up.py"


def test_every_experiment_has_a_row_once_it_is_measured(write_up: dict[str, Any]) -> None:
    names = list(runpy.run_path(str(FOLDER / "experiments.py"))["EXPERIMENTS"])
    measured = {name: result(f"about {name}", 100) for name in names}
    tables = ["\n".join(table(measured)) for table in write_up["TABLES"].values()]
    assert all(any(f"about {name}" in table or f"`{name}`" in table for table in tables[:2]) for name in names)
    assert all(f"`{name}`" in tables[2] for name in names)


def test_the_numbers_of_a_row_and_the_difference_to_the_preset(write_up: dict[str, Any]) -> None:
    measured = {"ten-minutes": result("as it is", 100), "ten-all": result("all at once", 50)}
    rows = list(write_up["ablations"](measured))[2:]
    assert rows[0] == "| as it is | 1,234,567 | 2 | 20.0% (10.0% to 20.0%) |  |"
    assert rows[1].endswith("| 10.0% (10.0% to 20.0%) | -10.0% |")
    (row,) = list(write_up["accuracies"]({"fast-vanilla": result("preset fast", 100)}))[2:]
    assert row.endswith("| 103, 100 right | 0, 0 right |")
