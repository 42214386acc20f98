"""A run on several nodes of a real Slurm: the losses of one process, a reported death, harmless restarts."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from tests.launch.cluster import PRETRAIN, SLOW, Child, Lab, ends_after_a_warning, jobs, steps, until, weights

from attnlab.launch.records import exit_code, submissions_of
from attnlab.launch.slurm import log_of
from attnlab.runs import read_config, read_metrics, read_status

pytestmark = pytest.mark.slow

NODES = ["--launch", "slurm", "--partition", "wide", "--nodes", "2", "--cpus", "1"]


def processes_of(run: Path) -> dict[int, psutil.Process]:
    """The processes of a run, by their rank."""
    found = {}
    for process in psutil.process_iter():
        try:
            words, rank = process.cmdline(), process.environ().get("RANK")
        except psutil.Error:
            continue
        if rank is not None and any(word.endswith(str(run)) for word in words):
            found[int(rank)] = process
    return found


def test_two_nodes_have_the_losses_and_weights_of_one_process(lab: Lab, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    words = [*PRETRAIN, "--dropout", 0, "--batch-size", 7, "--steps", 6, "--evaluate-every", 3]
    assert lab(*words, "--run", one).returncode == 0
    done = lab(*words, "--run", two, *NODES, "--wait")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [list(read_metrics(run / "metrics.jsonl")) for run in (one, two)]
    assert [(line["step"], line["split"]) for line in lines[0]] == [(line["step"], line["split"]) for line in lines[1]]
    for mine, theirs in zip(*lines, strict=True):
        assert theirs["loss"] == pytest.approx(mine["loss"], rel=1e-4)
    tensors = [load_file(max((run / "checkpoints").glob("step-*")) / "model.safetensors") for run in (one, two)]
    for name, tensor in tensors[0].items():
        torch.testing.assert_close(tensors[1][name], tensor, rtol=1e-3, atol=2e-5)

    # Only the first of them wrote and printed.
    [job] = submissions_of(two)[0].jobs
    first = log_of(two, job)
    assert "step 6/6" in done.stdout and "step 6/6" in first.read_text()
    assert "step" not in first.with_name(f"{job}_1_log.out").read_text()
    assert {path.name for path in two.iterdir()} - {"slurm"} == {path.name for path in one.iterdir()}
    assert read_config(two)["machine"]["processes"] == 2 and exit_code(two, job) == 0
    assert jobs(lab, two)[0]["state"] == "finished"


def test_a_death_is_reported_and_a_warning_changes_nothing(
    slurm: dict[str, str], lab: Lab, child: Child, tmp_path: Path
) -> None:
    """Uninterrupted in two processes of one machine; killed, resumed and requeued on two nodes."""
    run, whole, slowly = tmp_path / "run", tmp_path / "whole", tmp_path / "slowly"
    (tmp_path / "slow.py").write_text(SLOW)
    words = [*PRETRAIN, "--steps", "60", "--save-every", "2", "--attention", str(tmp_path / "slow.py")]
    uninterrupted = child(*words, "--run", whole, "--processes", 2)
    assert uninterrupted.wait(timeout=300) == 0

    slowly.touch()
    assert lab(*words, "--run", run, *NODES).returncode == 0
    [job] = submissions_of(run)[0].jobs
    until(lambda: steps(run) >= 3, "the job trains")
    members = processes_of(run)
    assert sorted(members) == [0, 1] and len({member.parent() for member in members.values()}) == 2
    members[1].kill()
    until(lambda: exit_code(run, job) is not None, "the job ends")
    assert exit_code(run, job) == 1
    reason = "process 1 of 2 (counted from 0, on loopback2) died: killed by signal 9 (SIGKILL)."
    assert read_status(run)["state"] == "failed" and read_status(run)["reason"] == reason
    assert f"error: {reason}" in lab("jobs", "log", job).stdout
    assert jobs(lab, run)[0]["state"] == "failed" and jobs(lab, run)[0]["remark"] == reason
    until(lambda: not processes_of(run), "no process is left")

    uneven = lab("resume", run, *NODES, "--nodes", 3)
    assert uneven.returncode == 2 and "the number of processes it started with, 2" in uneven.stderr
    follower = child("resume", run, *NODES, "--wait")
    try:
        before = steps(run)
        until(lambda: steps(run) >= before + 2, "it continues")
        [job] = submissions_of(run)[1].jobs
        ends_after_a_warning(follower, run, job, slurm)
    finally:
        follower.kill()
    assert weights(run) == weights(whole)
    lines, expected = (list(read_metrics(each / "metrics.jsonl")) for each in (run, whole))
    assert [(line["step"], line["loss"]) for line in lines] == [(line["step"], line["loss"]) for line in expected]
