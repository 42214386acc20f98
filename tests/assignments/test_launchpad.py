"""launchpad.sh on clusters with and without GPUs, played by a `sinfo` and an `sbatch` of the test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.assignments.conftest import ASSIGNMENTS

SCRIPT = ASSIGNMENTS / "training-transformer-language-models" / "launchpad.sh"
WITHOUT, WITH = "low (null)\nwide (null)", "defq (null)\na100 gpu:a100:4(S:0-1)\nv100 gpu:v100:4"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A folder with programs that write down how they were called."""
    programs = {
        "sinfo": 'echo "$SINFO_SAYS"',
        "sbatch": 'echo "$*" >> called.sbatch; [ -z "${REFUSE:-}" ] || exit 1; echo 7',
        "python": 'echo "$*" >> called.python',
    }
    (tmp_path / "bin").mkdir()
    for name, body in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "classification.py").touch()
    return tmp_path


def launch(cluster: Path, **variables: str) -> tuple[str, str, str]:
    """Run it as a job would; what it printed, and how sbatch and python were called."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    path = f"{cluster / 'bin'}{os.pathsep}{environment['PATH']}"
    job = {"PATH": path, "SLURM_JOB_ID": "3", "SLURM_SUBMIT_DIR": str(cluster), "SLURM_JOB_PARTITION": "defq"}
    done = subprocess.run(
        ["bash", SCRIPT], env={**environment, **job, **variables}, cwd=cluster, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    files = (cluster / "called.sbatch", cluster / "called.python")
    return done.stdout + done.stderr, *(file.read_text() if file.is_file() else "" for file in files)


def test_without_gpus_the_job_runs_the_printed_command(cluster: Path) -> None:
    _, submitted, ran = launch(cluster, SINFO_SAYS=WITHOUT)
    assert submitted == ""
    assert ran == (
        "classification.py --experiment overfit --small_subset True --device cuda --model distilbert-base-uncased "
        "--batch_size 64 --lr 1e-4 --num_epochs 20\n"
    )


@pytest.mark.parametrize(("own", "expected"), [("defq", "a100"), ("v100", "v100")])
def test_with_gpus_the_job_submits_itself_with_one(cluster: Path, own: str, expected: str) -> None:
    """In its own partition, or in the first that has some."""
    said, submitted, ran = launch(cluster, SINFO_SAYS=WITH, SLURM_JOB_PARTITION=own)
    assert submitted.split()[:3] == ["--parsable", "--gres=gpu:1", f"--partition={expected}"]
    assert submitted.split()[3].endswith("launchpad.sh") and ran == ""
    assert "submitted again as job 7" in said


@pytest.mark.parametrize("given", ["SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE", "SUBMITTED_AGAIN"])
def test_a_job_with_a_gpu_does_not_submit_itself(cluster: Path, given: str) -> None:
    _, submitted, ran = launch(cluster, SINFO_SAYS=WITH, **{given: "1"})
    assert submitted == "" and "--device cuda" in ran


def test_a_job_for_the_cpu_asks_for_no_gpu(cluster: Path) -> None:
    _, submitted, ran = launch(cluster, SINFO_SAYS=WITH, DEVICE="cpu")
    assert submitted == "" and "--device cpu" in ran


def test_a_refused_gpu_is_said_and_the_job_continues(cluster: Path) -> None:
    said, submitted, ran = launch(cluster, SINFO_SAYS=WITH, REFUSE="yes")
    assert submitted and "continues without a GPU" in said and "classification.py" in ran


def test_a_setting_after_the_script_is_refused(cluster: Path) -> None:
    done = subprocess.run(["bash", SCRIPT, "EPOCHS=3"], cwd=cluster, text=True, capture_output=True)
    assert done.returncode == 2 and done.stderr.startswith("error: EPOCHS=3: settings are given before sbatch")
    assert done.stderr.count("\n") == 1 and not (cluster / "called.python").exists()


def test_settings_come_from_the_environment(cluster: Path) -> None:
    _, _, ran = launch(cluster, SINFO_SAYS=WITHOUT, MODEL="my models/one", EPOCHS="3", OUTPUT="runs/a b")
    assert "--model my models/one " in ran and "--num_epochs 3 --output runs/a b" in ran
