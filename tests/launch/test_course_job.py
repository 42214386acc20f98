"""Homework 6 on a real Slurm: the lines that its README and its report print, from a clean copy of the folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.assignments.conftest import ASSIGNMENTS
from tests.tiny_models import tiny_model

from attnlab.runs import read_config

LINES = (
    "squeue",
    'sinfo -o "%50N %10c %20m %30G "',
    "sbatch launchpad.sh",
    "squeue -u JHEDid",
    "squeue -t JHEDid",
    "MODEL=roberta-base EPOCHS=30 sbatch launchpad.sh",
)
pytestmark = pytest.mark.slow


@pytest.fixture
def course(tmp_path: Path, slurm: dict[str, str]) -> tuple[Path, dict[str, str]]:
    """The folder, and the environment with tiny models and questions."""
    pytest.importorskip("transformers")
    folder = tmp_path / "course"
    name = "training-transformer-language-models"
    shutil.copytree(ASSIGNMENTS / name, folder, ignore=shutil.ignore_patterns("runs", "results"))
    for model, family in (("distilbert-base-uncased", "distilbert"), ("roberta-base", "roberta")):
        tiny_model(tmp_path / "models" / model, family)
    (tmp_path / "boolq").mkdir()
    for split in ("train", "dev"):
        rows = [
            {"question": f"{split} {n}", "passage": ("a bad plot", "the film is good")[n % 2], "answer": n % 2 > 0}
            for n in range(24)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "boolq" / f"{split}.jsonl").write_text(text, encoding="utf-8")
    places = {"ATTNLAB_MODELS": str(tmp_path / "models"), "ATTNLAB_DATA": str(tmp_path), "PYTHON": sys.executable}
    return folder, slurm | places


def typed(line: str, course: tuple[Path, dict[str, str]]) -> subprocess.CompletedProcess[str]:
    folder, environment = course
    return subprocess.run(["bash", "-c", line], cwd=folder, env=environment, text=True, capture_output=True)


def test_the_session_of_the_report_runs_question_2_as_a_job(course: tuple[Path, dict[str, str]]) -> None:
    done = typed("OUTPUT=runs/job ./slurm_session.sh", course)
    assert done.returncode == 0, done.stderr
    shown = [line.removeprefix("> ") for line in done.stdout.splitlines() if line.startswith("> ")]
    assert shown[:4] == [*LINES[:3], "squeue -u $USER"] and shown[-1] == "squeue"
    assert "(null)" in done.stdout and "there is no GPU on this machine" in done.stdout
    results = json.loads((course[0] / "runs" / "job" / "results.json").read_text(encoding="utf-8"))
    assert results["instead"] == [] and len(results["runs"][0]["by_epoch"]["train"]) == 20
    assert (course[0] / "runs" / "job" / "overfit.png").is_file()


def test_settings_before_sbatch_reach_the_job(course: tuple[Path, dict[str, str]]) -> None:
    done = typed(f"OUTPUT=runs/job {LINES[-1]}", course)
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[-1]
    limit = time.monotonic() + 600
    while typed(f"squeue --noheader --job {job}", course).stdout.strip() and time.monotonic() < limit:
        time.sleep(1)
    output = (course[0] / f"slurm-{job}.out").read_text(encoding="utf-8")
    assert "results: runs/job/results.json" in output, output
    config = read_config(course[0] / "runs" / "job" / "run")
    assert (config["model"]["name"], config["training"]["epochs"]) == ("roberta-base", 30)


def test_the_documents_option_for_one_user_selects_states(course: tuple[Path, dict[str, str]]) -> None:
    """As the report says; -u is the one, with a user that exists."""
    refused = typed("squeue -t JHEDid", course)
    assert refused.returncode != 0 and "Invalid job state specified: JHEDid" in refused.stderr
    assert typed("squeue -u $(id -un)", course).returncode == 0
