"""Shared by the tests on a real Slurm: a small run, and how to look at it from outside."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnlab.runs import read_metrics, read_record, read_status

Lab = Callable[..., subprocess.CompletedProcess[str]]
Child = Callable[..., subprocess.Popen[str]]

PRETRAIN = """
    pretrain --tokens words --people 24 --places 8 --layers 1 --heads 2 --width 16 --context 48 --preset vanilla
    --dropout 0.1 --optimizer muon --batch-size 8 --dev-share 0.2 --evaluate-every 20 --save-every 50 --log-every 1
    --device cpu --precision fp32 --threads 1
""".split()  # noqa: SIM905

# Slow while a file exists beside it: time to be stopped, without a large model.
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


def until(true: Callable[[], object], what: str, seconds: float = 300) -> None:
    """Wait until a cluster has done something."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds} s: {what}"
        time.sleep(0.1)


def steps(run: Path) -> int:
    return max((line["step"] for line in read_metrics(run / "metrics.jsonl")), default=0)


def weights(run: Path) -> bytes:
    return max((run / "checkpoints").glob("step-*")).joinpath("model.safetensors").read_bytes()


def ends_after_a_warning(follower: subprocess.Popen[str], run: Path, job: str, slurm: dict[str, str]) -> None:
    """Warned as before a time limit, a slow run saves; requeued, and no longer slow, it finishes."""
    subprocess.run(["scancel", "--signal=USR2", job], env=slurm, check=True)
    until(lambda: read_status(run)["state"] == "interrupted", "warned, it saves")
    run.with_name("slowly").unlink()
    out, _ = follower.communicate(timeout=300)
    assert follower.returncode == 0, out
    assert read_status(run)["state"] == "finished" and len(read_record(run)["resumed"]) == 2


def jobs(lab: Lab, run: Path) -> list[dict[str, Any]]:
    """The lines of `attnlab jobs` about a run."""
    found = lab("jobs", "--json")
    assert found.returncode == 0, found.stderr
    return [job for job in json.loads(found.stdout) if Path(job["run"]).name == run.name]
