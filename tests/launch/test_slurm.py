"""On a real Slurm: runs are submitted, followed, cancelled, pre-empted and resumed; comparisons are arrays."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.launch.cluster import PRETRAIN, SLOW, Child, Lab, ends_after_a_warning, jobs, steps, until, weights
from tests.tiny_models import tiny_model

from attnlab.launch.records import exit_code, submissions_of
from attnlab.runs import is_run, read_config, read_metrics, read_record, read_status

pytestmark = pytest.mark.slow

BROKEN = """
from pathlib import Path

import torch

class Broken(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.line = torch.nn.Linear(shape.width, shape.width)

    def forward(self, x):
        mended = Path(__file__).with_name("mended").exists()
        return self.line(x) * (1.0 if mended or not self.training else float("nan"))
"""

ASSIGNMENT = Path(__file__).parents[2] / "assignments" / "training-transformer-language-models"
COMPARE = """
    compare --steps 6 --evaluations 2 --layers 1 --heads 2 --width 16 --context 16 --batch-size 4 --seeds 1
    --dev-blocks 8 --prefix-blocks 4 --device cpu --precision fp32 --threads 1
""".split()  # noqa: SIM905


def test_the_cluster_is_described(lab: Lab) -> None:
    found = json.loads(lab("cluster", "--json").stdout)
    assert [(nodes["partition"], nodes["nodes"], nodes["cpus"]) for nodes in found] == [
        ("low", "1", "2"),
        ("high", "1", "2"),
        ("wide", "2", "2"),
    ]
    assert "loopback" in lab("cluster").stdout


def test_a_job_is_followed_and_ends_with_the_exit_code_of_its_run(lab: Lab, tmp_path: Path) -> None:
    run, empty = tmp_path / "run", tmp_path / "empty.txt"
    empty.write_text("")
    done = lab(*PRETRAIN, "--steps", 3, "--run", run, "--launch", "slurm", "--wait", "--cpus", 1)
    assert done.returncode == 0, done.stderr
    [submission] = submissions_of(run)
    [job] = submission.jobs
    assert f"job: {job}" in done.stdout and "step 3/3" in done.stdout and f"report: {run}" in done.stdout
    assert read_status(run)["state"] == "finished" and "--launch" not in read_record(run)["command"]
    [shown] = jobs(lab, run)
    assert (shown["job"], shown["state"], shown["step"], shown["steps"]) == (job, "finished", 3, 3)
    assert lab("jobs", "log", job).stdout == lab("jobs", "log", run).stdout != ""

    # What only the job can find out is in its log and in the exit code.
    failed = lab(*PRETRAIN, "--steps", 3, "--corpus", empty, "--run", tmp_path / "no", "--launch", "slurm", "--wait")
    assert failed.returncode == 2 and f"error: {empty}" in failed.stdout, failed.stdout
    assert jobs(lab, tmp_path / "no")[0]["state"] == "failed"


def test_what_slurm_refuses_leaves_nothing_behind(lab: Lab, tmp_path: Path) -> None:
    corpus = tmp_path / "text.txt"
    corpus.write_text("a cat sat on a mat\n" * 100)
    for words in (PRETRAIN, [*COMPARE, "--corpus", corpus]):
        done = lab(*words, "--run", tmp_path / "run", "--launch", "slurm", "--partition", "nowhere")
        assert done.returncode == 2 and done.stdout == "", done.stdout
        assert done.stderr.startswith("error: Slurm refused the job: ") and "partition" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "run").exists()


def test_preempted_and_out_of_time_it_ends_with_the_weights_of_an_uninterrupted_run(
    slurm: dict[str, str], child: Child, tmp_path: Path
) -> None:
    """Two ways to be stopped: by a job of a higher partition, and by the warning before the time limit."""
    attention, slowly, run = tmp_path / "slow.py", tmp_path / "slowly", tmp_path / "run"
    attention.write_text(SLOW)
    words = [*PRETRAIN, "--steps", "120", "--attention", str(attention)]
    whole = child(*words, "--run", tmp_path / "whole")
    assert whole.wait(timeout=300) == 0, whole.stdout

    slowly.touch()
    follower = child(*words, "--run", run, "--launch", "slurm", "--partition", "low", "--cpus", 2, "--wait")
    try:
        until(lambda: steps(run) >= 2, "the job trains")
        [job] = submissions_of(run)[0].jobs
        urgent = ["sbatch", "--partition=high", "--cpus-per-task=2", "--output=/dev/null", "--wrap", "sleep 1"]
        subprocess.run(urgent, env=slurm, check=True, capture_output=True, cwd=tmp_path)
        until(lambda: len(read_record(run).get("resumed", [])) == 1, "pre-empted, it is resumed")
        before = steps(run)
        until(lambda: steps(run) >= before + 2, "it trains again")
        ends_after_a_warning(follower, run, job, slurm)
    finally:
        follower.kill()
    assert weights(run) == weights(tmp_path / "whole")
    lines = [(line["step"], line["split"]) for line in read_metrics(run / "metrics.jsonl")]
    assert lines == [(line["step"], line["split"]) for line in read_metrics(tmp_path / "whole" / "metrics.jsonl")]


def test_cancelled_a_running_job_saves_and_a_waiting_one_never_begins(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "slowly").touch()
    words = [*PRETRAIN, "--steps", 500, "--attention", tmp_path / "slow.py", "--launch", "slurm", "--cpus", 2]
    running, waiting = tmp_path / "running", tmp_path / "waiting"
    for run in (running, waiting):
        assert lab(*words, "--run", run).returncode == 0
    until(lambda: steps(running) >= 2, "the first trains")
    assert [job["state"] for run in (running, waiting) for job in jobs(lab, run)] == ["running", "queued"]
    again = lab(*words, "--run", waiting)
    assert again.returncode == 2 and "is still active" in again.stderr

    number = submissions_of(waiting)[0].jobs[0]
    assert lab("jobs", "cancel", number).stdout.strip() == f"cancelled: {number}"
    assert lab("jobs", "cancel", running).returncode == 0
    until(lambda: read_status(running)["state"] == "interrupted", "it saves")
    until(lambda: jobs(lab, running)[0]["state"] == "cancelled", "it ends, and is not requeued")
    assert list((running / "checkpoints").glob("step-*"))
    assert not is_run(waiting)
    assert "have ended already" in lab("jobs", "cancel", running).stdout


def test_a_comparison_is_an_array_that_reports_after_its_submitter_ended(
    lab: Lab, child: Child, tmp_path: Path
) -> None:
    run, broken, corpus = tmp_path / "compared", tmp_path / "broken.py", tmp_path / "text.txt"
    broken.write_text(BROKEN)
    corpus.write_text("the cat sat\na dog ran\nthe dog sat\na cat ran\n" * 60)
    variants = ["--attention", f"vanilla,{broken}", "--corpus", corpus]
    submitter = child(*COMPARE, *variants, "--run", run, "--launch", "slurm", "--at-once", 1, "--cpus", 1)
    out, _ = submitter.communicate(timeout=300)
    assert submitter.returncode == 0 and not (run / "results.json").exists(), out
    assert read_status(run)["state"] == "queued"
    [submission] = submissions_of(run)
    until(lambda: exit_code(run, submission.last) is not None, "the last job gathers")

    found = {row["label"]: row for row in json.loads((run / "results.json").read_text())["variants"]}
    assert found["vanilla"]["dev_loss"]["runs"] == 1 and "the loss is nan" in found["broken"]["failures"]["0"]
    assert read_status(run)["reason"] == "without broken" and (run / "report.html").is_file()
    first, second = run / "cells" / "vanilla" / "seed-0", run / "cells" / "broken" / "seed-0"
    assert read_status(first)["at"] <= read_record(second)["started"]  # one at a time
    states = {job["job"]: job["state"] for job in jobs(lab, first)}
    assert sorted(states.values()) == ["failed", "finished"]

    # Only what is missing is run again.
    (tmp_path / "mended").touch()
    kept = (first / "status.json").read_bytes()
    again = lab("compare", "--run", run, "--resume", "--launch", "slurm", "--wait")
    assert again.returncode == 0 and "broken" in again.stdout, again.stdout + again.stderr
    assert submissions_of(run)[-1].runs == ["cells/broken/seed-0"]
    assert (first / "status.json").read_bytes() == kept
    found = {row["label"]: row for row in json.loads((run / "results.json").read_text())["variants"]}
    assert found["broken"]["dev_loss"]["runs"] == 1 and not found["broken"]["failures"]
    assert read_status(run)["state"] == "finished" and not read_status(run)["reason"]
    nothing = lab("compare", "--run", run, "--resume", "--launch", "slurm")
    assert nothing.returncode == 2 and "nothing is missing" in nothing.stderr


def test_launchpad_runs_the_assignment_as_a_job(slurm: dict[str, str], tmp_path: Path) -> None:
    """`sbatch launchpad.sh` from its folder, as the document has it: only the model and the data are tiny."""
    shutil.copytree(ASSIGNMENT, tmp_path / "course", ignore=shutil.ignore_patterns("runs", "__pycache__"))
    (tmp_path / "boolq").mkdir()
    for name, count in (("train", 40), ("dev", 10)):
        rows = [
            {"question": f"{name} {n}", "passage": ("a bad plot", "the film is good")[n % 2], "answer": n % 2 > 0}
            for n in range(count)
        ]
        (tmp_path / "boolq" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = {
        **slurm,
        "PYTHON": sys.executable,
        "MODEL": str(tiny_model(tmp_path / "tiny", "distilbert")),
        "LR": "2e-2",
        "EPOCHS": "10",
        "ATTNLAB_DATA": str(tmp_path),
    }

    def sbatch(folder: Path, **more: str) -> tuple[int, str]:
        command = ["sbatch", "--parsable", "--wait", "launchpad.sh"]
        done = subprocess.run(command, env={**asked, **more}, cwd=folder, text=True, capture_output=True, timeout=300)
        return done.returncode, (folder / f"slurm-{int(done.stdout)}.out").read_text()

    session = subprocess.run(
        [tmp_path / "course" / "slurm_session.sh"],
        env={**asked, "OUTPUT": "runs/slurm"},
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert session.returncode == 0, session.stderr
    shown = session.stdout
    for command in ("squeue", 'sinfo -o "%50N %10c %20m %30G "', "sbatch launchpad.sh", "squeue -u $USER"):
        assert f"> {command}\n" in shown
    assert "loopback,loopback2" in shown and "(null)" in shown  # the nodes, and that they have no GPUs
    assert "Submitted batch job " in shown and "classifi" in shown and "random chance on boolq: 50.0%" in shown
    assert platform.node() not in shown, "the name of this machine is nobody's business"
    folder = tmp_path / "course" / "runs" / "slurm"
    found = json.loads((folder / "results.json").read_text())
    assert found["runs"][0]["train"]["accuracy"] == 1.0 and (folder / "overfit.png").is_file()
    assert " - Average TRAIN metrics: accuracy={'accuracy': 1.0}" in shown
    config = read_config(folder / "run")
    assert (config["batch"]["size"], config["training"]["epochs"], config["optimizer"]["lr"]) == (64, 10, 0.02)
    assert config["model"]["name"] == asked["MODEL"] and config["watch"]["overfit"] == 10

    code, said = sbatch(tmp_path / "course", EXPERIMENT="overfitt")  # wrong: the job fails with the reason
    assert code == 2 and "did you mean 'overfit'?" in said and "Traceback" not in said
    shutil.copy(ASSIGNMENT / "launchpad.sh", tmp_path)
    code, said = sbatch(tmp_path)
    assert code == 2 and "submit this from the folder of that file" in said
