"""The measured parts of a report: from results to figures, tables and marks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.assignments.test_reports import MARK, NUMBER

from attnlab.jobs.study.outcome import share
from attnlab.jobs.study.page import collect, filled

PAGE = """# A report

Text before.

<!-- results: grid -->
<!-- end -->

Text between.

<!-- output: slurm -->
<!-- end -->
"""
RUN = {"model": "models/tiny", "state": "finished", "batch_size": 1600, "tuned_parameters": 4386178, "minutes": 0.25}
RESULTS: dict[str, Any] = {
    "experiment": "tuning",
    "command": "python classification.py --experiment tuning",
    "instead": [["--model tiny", "--model distilbert-base-uncased"]],
    "task": "boolq",
    "seed": 0,
    "max_tokens": 128,
    "examples": {"train": 1600, "dev": 3270, "test": 286},
    "chance": {"guess": 0.5, "dev": 0.6217, "test": 0.6259},
    "machine": {"device": "cpu", "precision": "fp32", "threads": 2, "cpu": "A 2.50 GHz CPU", "cores": 2},
    "minutes": 0.25,
    "changes": ["batch size auto: 64."],
    "figures": ["tuning.png", "tuning-compared.png"],
    "chosen": [0],
    "largest_batch": {"size": 1600, "sentence": "batch size largest: 1600."},
    "runs": [
        {**RUN, "name": "tiny, lr=0.001", "dev": share(0.7, 3270), "test": share(0.65, 286), "collapsed": False},
        {**RUN, "name": "tiny, lr=0.01", "dev": share(0.6217, 3270), "collapsed": True},
        {"name": "roberta-base", "model": "roberta-base", "state": "unreachable", "reason": "no hub"},
        {"name": "big", "model": "big", "state": "does not fit", "reason": "with batches of 2, 1"},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    study = tmp_path / "runs" / "grid"
    study.mkdir(parents=True)
    (study / "results.json").write_text(json.dumps(RESULTS))
    for name in RESULTS["figures"]:
        (study / name).write_bytes(b"png")
    (tmp_path / "report.md").write_text(PAGE)
    return tmp_path


def test_without_results_nothing_is_shown(folder: Path) -> None:
    assert filled(folder) == PAGE


def test_results_and_figures_are_kept_under_the_name_of_their_folder(folder: Path) -> None:
    collect(folder)
    assert sorted(path.name for path in (folder / "figures").iterdir()) == ["grid-compared.png", "grid.png"]
    text = (folder / "report.md").read_text()
    assert "(figures/grid.png)" in text and "Text before." in text and "Text between." in text
    assert filled(folder) == text, "what is filled in stays as it is"
    assert json.loads((folder / "results" / "grid.json").read_text())["runs"] == RESULTS["runs"]


def test_a_table_has_every_run_with_its_state(folder: Path) -> None:
    collect(folder)
    rows = [line for line in (folder / "report.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == 4
    assert "(chosen on dev)" in rows[0] and "70.0%<!-- = results:grid.json:runs.0.dev.accuracy -->" in rows[0]
    assert "not reached" in rows[2] and "0: `with batches of 2, 1`" in rows[3]
    text = (folder / "report.md").read_text()
    assert "`--model tiny` instead of `--model distilbert-base-uncased`" in text
    assert "Collapsed, the same answer for at least 98%<!-- given --> of dev: `tiny, lr=0.01`." in text
    assert "**The largest batch size: 1,600<!-- = results:grid.json:largest_batch.size -->.**" in text


def test_a_search_answers_with_the_one_that_was_chosen(folder: Path) -> None:
    def answers() -> list[str]:
        text = re.sub(r"<!-- .*? -->", "", filled(folder))
        return [line for line in text.splitlines() if line.startswith("**Best accuracy")]

    collect(folder)
    assert answers() == ["**Best accuracy of tiny on the dev set: 70.0%. Its accuracy on the test set: 65.0%.**"]
    results = folder / "results" / "grid.json"
    for chosen in ([0, 2], [2], []):  # several models; one that could not be reached; no choice at all
        results.write_text(json.dumps(RESULTS | {"chosen": chosen}))
        assert answers() == []


def test_every_number_names_its_place_in_the_results(folder: Path) -> None:
    collect(folder)
    text = re.sub(r"```.*?```", "", (folder / "report.md").read_text(), flags=re.DOTALL)
    marks = [mark for mark in MARK.finditer(text) if mark["name"]]
    for mark in marks:
        _, file, keys = mark["name"].split(":")
        value: Any = json.loads((folder / "results" / file).read_text())
        for key in keys.split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
    assert len(marks) >= 20
    bare = re.findall(rf"(?<![\w§.−-]){NUMBER}(?![\w])", re.sub(r"`[^`\n]*`", "", MARK.sub("", text)))
    assert [n for n in bare if re.search(r"\.\d|%", n) or len(re.sub(r"\D", "", n)) >= 3] == []


def test_captured_output_is_a_block_of_text(folder: Path) -> None:
    (folder / "results").mkdir()
    (folder / "results" / "slurm.txt").write_text("> squeue\nJOBID\n\n")
    assert "<!-- output: slurm -->\n\n```text\n> squeue\nJOBID\n```\n\n<!-- end -->" in filled(folder)
