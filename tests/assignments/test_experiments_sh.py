"""experiments.sh of the assignments on fine-tuning: everything that their reports measure, as it is, on tiny models."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.assignments.conftest import ASSIGNMENTS
from tests.tiny_models import tiny_model

from attnlab.jobs.study.page import PART

pytest.importorskip("transformers")
FOLDERS = ("training-transformer-language-models", "adapting-transformers")
PARTS = [
    (name, part)
    for name in FOLDERS
    for part in re.search(r'^PARTS="(.*)"', (ASSIGNMENTS / name / "experiments.sh").read_text("utf-8"), re.M)[1].split()
]
AT_HAND = {"bert-tiny": "bert", "tinybert-4l-312d": "bert", "minilm": "bert", "flan-t5-small": "t5"}


@pytest.fixture(scope="module")
def at_hand(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment with the models of the reports, of width 16, and as many questions as the experiments take."""
    folder = tmp_path_factory.mktemp("at-hand")
    for name, family in AT_HAND.items():
        tiny_model(folder / "models" / name, family)
    (folder / "data" / "boolq").mkdir(parents=True)
    for name, count in (("train", 960), ("dev", 40)):
        rows = [
            {
                "question": f"is {name} {n} good",
                "passage": ("a bad plot", "the film is good")[n % 3 > 0],
                "answer": n % 3 > 0,
            }
            for n in range(count)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "data" / "boolq" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return {
        "ATTNLAB_MODELS": str(folder / "models"),
        "ATTNLAB_DATA": str(folder / "data"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHON": sys.executable,
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), [each for each in PARTS if each[1] != "slurm"])
def test_a_part_of_the_report_is_measured_anew_by_the_command_that_it_shows(
    name: str, part: str, tmp_path: Path, at_hand: dict[str, str], cli_environment: dict[str, str]
) -> None:
    folder = tmp_path / name
    shutil.copytree(ASSIGNMENTS / name, folder, ignore=shutil.ignore_patterns("runs", "results", "figures"))
    done = subprocess.run(
        ["./experiments.sh", part],
        cwd=folder,
        env=cli_environment | at_hand,
        text=True,
        capture_output=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    [kept] = (folder / "results").glob("*.json")
    made = json.loads(kept.read_text(encoding="utf-8"))
    committed = json.loads((ASSIGNMENTS / name / "results" / kept.name).read_text(encoding="utf-8"))
    assert made["command"] == committed["command"] and made["instead"] == committed["instead"]
    assert [run["name"] for run in made["runs"]] == [run["name"] for run in committed["runs"]]
    assert made["figures"] == committed["figures"]
    report = (folder / "report.md").read_text(encoding="utf-8")
    [shown] = [match[0] for match in PART.finditer(report) if match[3] == kept.stem]
    assert f"`{made['command']}`" in shown
    for figure in made["figures"]:
        assert f"(figures/{figure})" in shown and (folder / "figures" / figure).stat().st_size > 5000


def test_without_slurm_its_session_is_one_sentence(tmp_path: Path) -> None:
    """In a copy of the folder alone; with the lab's tools beside it experiments.sh starts a Slurm of its own."""
    folder = tmp_path / FOLDERS[0]
    shutil.copytree(ASSIGNMENTS / FOLDERS[0], folder)
    (tmp_path / "bin").mkdir()
    for program in ("bash", "dirname", "id", "mkdir", "env"):
        (tmp_path / "bin" / program).symlink_to(str(shutil.which(program)))
    environment = {name: value for name, value in os.environ.items() if name != "SLURM_CONF"}
    for command in ("./slurm_session.sh", "./experiments.sh slurm"):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment | {"PATH": str(tmp_path / "bin")},
            text=True,
            capture_output=True,
        )
        assert done.returncode == 2, command
        assert done.stderr.startswith("error: there is no Slurm here") and done.stderr.count("\n") == 1, command
