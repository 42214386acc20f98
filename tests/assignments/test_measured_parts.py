"""The measured parts of the reports on fine-tuning are those of the results beside them, each by a command."""

from __future__ import annotations

import re
import subprocess

import pytest
from tests.assignments.conftest import ASSIGNMENTS

from attnlab.jobs.study.page import PART, filled

FOLDERS = ("training-transformer-language-models", "adapting-transformers")


@pytest.mark.parametrize("name", FOLDERS)
def test_the_report_shows_the_results_that_are_kept(name: str) -> None:
    text = (ASSIGNMENTS / name / "report.md").read_text(encoding="utf-8")
    assert filled(ASSIGNMENTS / name) == text, "run: python collect.py"


@pytest.mark.parametrize("name", FOLDERS)
def test_every_part_is_made_by_experiments_sh(name: str) -> None:
    folder = ASSIGNMENTS / name
    parts = {part[2] for part in PART.findall((folder / "report.md").read_text(encoding="utf-8"))}
    script = (folder / "experiments.sh").read_text(encoding="utf-8")
    made = set(re.findall(r"^  (?:study|basics|types) ([\w-]+) ", script, re.MULTILINE))
    made |= set(re.findall(r"(?:OUTPUT=runs|results)/([\w-]+?)(?:\.txt)?[ \n]", script))
    assert parts == made - {"results.json"}
    kept = {path.stem for path in folder.glob("results/*")}
    assert kept <= parts, "results that no part shows"


@pytest.mark.parametrize("name", FOLDERS)
def test_a_part_that_does_not_exist_is_one_sentence(name: str) -> None:
    done = subprocess.run([ASSIGNMENTS / name / "experiments.sh", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: there is no part nonsense: choose from ")
