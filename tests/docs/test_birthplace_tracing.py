"""docs/notebook/birthplace-tracing.md shows what its script measured, or says that nothing was measured yet."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.test_notebook import NOTEBOOK, _module

from attnlab.interpret.asked_people import PARTS

PAGE = NOTEBOOK / "birthplace-tracing.md"
DATA = NOTEBOOK / "data" / "birthplace-tracing.json"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return _module("birthplace_tracing")


def results() -> dict[str, dict[str, object]]:
    """Numbers of the form that the script stores, of a model with one layer."""
    cells = [f"{layer}/{part}" for layer in ("embeddings", "0") for part in PARTS if part != "middle of name"]
    trace = {"clean": 0.9, "corrupted": 0.1}
    effects = {f"{site}/{cell}": 0.01 * n for site in ("stream", "attention", "mlp") for n, cell in enumerate(cells)}
    measured = {
        "accuracy": 0.5,
        "stored": 1.0,
        "chance": 0.04,
        "lens": {cell: {"probability": 0.2, "first_answer": 0.25} for cell in cells},
        "right": trace | {"effects": effects},
        "own": trace | {"effects": effects},
        "exchanged": trace | {"corrupted": 0.2, "effects": effects},
    }
    unread = {name: value for name, value in measured.items() if name != "stored"}
    models = {"sixteen": measured, "one": measured, "unread": unread}
    return {model: {str(seed): values for seed in range(3)} for model, values in models.items()}


def test_the_page_is_filled_in_and_can_be_filled_in_again(script: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    once = script.filled(page, results())
    assert script.filled(once, results()) == once
    for table in script.TABLES.values():
        assert "\n".join(table(results())) in once
    assert "| read in one wording | 100.0% ± 0.0% | 50.0% ± 0.0% | 0.900 ± 0.000 | 0.100 ± 0.000 |" in once
    assert "| not read | – | 50.0% ± 0.0% |" in once
    assert "| not read | 0 | +0.060 ± 0.000 | +0.070 ± 0.000 | +0.080 ± 0.000 | +0.090 ± 0.000 |" in once
    assert "Not measured" not in once and "Not drawn" not in once
    before, after = (text.split("## Results")[0] for text in (page, once))
    assert before == after


def test_the_figure_is_small(script: ModuleType, tmp_path: Path) -> None:
    script.draw(results(), tmp_path / "figures" / "x.png")
    assert 10_000 < (tmp_path / "figures" / "x.png").stat().st_size <= 150_000


def test_the_page_shows_what_was_measured(script: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    if DATA.is_file():
        assert script.filled(page, json.loads(DATA.read_text(encoding="utf-8"))) == page
    else:
        assert page.count("Not measured yet.") == len(script.TABLES)


@pytest.mark.slow
def test_the_script_runs_and_resumes(tmp_path: Path, cli_environment: dict[str, str]) -> None:
    shutil.copy(PAGE, tmp_path / PAGE.name)
    words = [sys.executable, str(NOTEBOOK / "birthplace_tracing.py"), "run", "runs", "--tiny", "--out", "."]
    for _ in range(2):
        done = subprocess.run(words, cwd=tmp_path, env=cli_environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "pretraining" not in done.stderr  # the second time nothing is trained
    assert "Not measured" not in (tmp_path / PAGE.name).read_text(encoding="utf-8")
