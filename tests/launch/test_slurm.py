"""On a real Slurm: runs are handed over, followed, cancelled, pre-empted and taken up again; comparisons are arrays."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab import console
from attnlab.cli import main
from attnlab.launch.records import exit_code, submissions_of
from attnlab.runs import is_run, read_metrics, read_record, read_status

Lab = Callable[..., subprocess.CompletedProcess[str]]
Child = Callable[..., subprocess.Popen[str]]

PRETRAIN = """
    pretrain --tokens words --people 24 --places 8 --layers 1 --heads 2 --width 16 --context 48 --preset vanilla
    --dropout 0.1 --optimizer muon --batch-size 8 --dev-share 0.2 --evaluate-every 20 --save-every 50 --log-every 1
    --device cpu --precision fp32 --threads 1
""".split()  # noqa: SIM905

# Slow as long as a file lies beside it: time enough to be stopped, without a model that takes time.
SLOW = """
import time
from pathlib import Path

import torch

class Slow(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.line = torch.nn.Linear(shape.width, shape.width)

    def forward(self, x):
        if Path(__file__).with_name("slowly").exists():
            time.sleep(0.15)
        return self.line(x)
"""

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

COMPARE = """
    compare --steps 6 --evaluations 2 --layers 1 --heads 2 --width 16 --context 16 --batch-size 4 --seeds 1
    --dev-blocks 8 --prefix-blocks 4 --device cpu --precision fp32 --threads 1
""".split()  # noqa: SIM905


def until(true: Callable[[], object], what: str, seconds: float = 300) -> None:
    """Wait for something that a cluster will do by and by."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds} s: {what}"
        time.sleep(0.1)


@pytest.fixture
def lab(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Lab:
    """`attnlab WORDS...` on a login node of the cluster, without the seconds a process takes to start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_verbosity", console.Verbosity.NORMAL)
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["attnlab", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(sys.argv, int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def child(slurm: dict[str, str], tmp_path: Path) -> Child:
    """The same as a process of its own."""

    def start(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "attnlab", *map(str, words)]
        return subprocess.Popen(command, env=slurm, cwd=tmp_path, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip

    return start


def steps(run: Path) -> int:
    return max((line["step"] for line in read_metrics(run / "metrics.jsonl")), default=0)


def weights(run: Path) -> bytes:
    return max((run / "checkpoints").glob("step-*")).joinpath("model.safetensors").read_bytes()


def jobs(lab: Lab, run: Path) -> list[dict[str, Any]]:
    """What `attnlab jobs` says of a run."""
    found = lab("jobs", "--json")
    assert found.returncode == 0, found.stderr
    return [job for job in json.loads(found.stdout) if Path(job["run"]).name == run.name]


def test_the_cluster_is_described(lab: Lab) -> None:
    found = json.loads(lab("cluster", "--json").stdout)
    assert [(nodes["partition"], nodes["nodes"], nodes["cpus"]) for nodes in found] == [
        ("low", "1", "2"), ("high", "1", "2"),
    ]  # fmt: skip
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

    # What only the job can find out: told in its log, and by the exit code.
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
        until(lambda: len(read_record(run).get("resumed", [])) == 1, "pre-empted, it is taken up again")
        before = steps(run)
        until(lambda: steps(run) >= before + 2, "it trains again")
        subprocess.run(["scancel", "--signal=USR2", job], env=slurm, check=True)
        until(lambda: read_status(run)["state"] == "interrupted", "warned, it saves")
        slowly.unlink()
        out, _ = follower.communicate(timeout=300)
    finally:
        follower.kill()
    assert follower.returncode == 0, out
    assert len(read_record(run)["resumed"]) == 2
    assert read_status(run)["state"] == "finished"
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
    assert again.returncode == 2 and "is still at it" in again.stderr

    number = submissions_of(waiting)[0].jobs[0]
    assert lab("jobs", "cancel", number).stdout.strip() == f"cancelled: {number}"
    assert lab("jobs", "cancel", running).returncode == 0
    until(lambda: read_status(running)["state"] == "interrupted", "it saves")
    until(lambda: jobs(lab, running)[0]["state"] == "cancelled", "it ends, and is not put back in the queue")
    assert list((running / "checkpoints").glob("step-*"))
    assert not is_run(waiting)
    assert "have ended already" in lab("jobs", "cancel", running).stdout


def test_a_comparison_is_an_array_that_reports_after_its_submitter_is_gone(
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


STAND_IN = """
import argparse, json
parser = argparse.ArgumentParser()
for name in "experiment small_subset device model batch_size lr num_epochs".split():
    parser.add_argument(f"--{name}", required=True)
print(json.dumps(vars(parser.parse_args())))
"""


def test_launchpad_runs_the_assignment_as_a_job(slurm: dict[str, str], tmp_path: Path) -> None:
    """`sbatch launchpad.sh` from its folder; the program itself is played by one that prints what it is told."""
    script = Path(__file__).parents[2] / "assignments" / "classification" / "launchpad.sh"
    shutil.copy(script, tmp_path)
    (tmp_path / "classification.py").write_text(STAND_IN)
    environment = {**slurm, "PYTHON": sys.executable, "MODEL": "a local folder"}
    command = ["sbatch", "--wait", "--output=out.txt", "launchpad.sh"]
    subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    told = json.loads((tmp_path / "out.txt").read_text().splitlines()[-1])
    assert told == {
        "experiment": "overfit", "small_subset": "True", "device": "auto", "model": "a local folder",
        "batch_size": "64", "lr": "1e-4", "num_epochs": "20",
    }  # fmt: skip
