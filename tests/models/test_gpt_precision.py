"""A GPT under bf16 autocast, in a child process: some CPUs that advertise bf16 are killed by its first product."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.base.machine.precision import try_in_child

SOURCE = Path(__file__).resolve().parents[2] / "src"
STEP = """
import torch
from attnlab.models.gpt import GPT, preset

torch.manual_seed(0)
model = GPT(preset("{preset}", vocabulary=17, layers=2, heads=2, width=16, context=12))
tokens = torch.randint(17, (3, 12))
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
loss.backward()
assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
"""


@pytest.fixture(scope="module")
def bf16() -> None:
    trial = try_in_child("cpu", "bf16")
    if trial.gflops is None:
        pytest.skip(f"bf16 does not work on this CPU: {trial.reason}")


@pytest.mark.parametrize("preset", ["vanilla", "modern"])
def test_a_step_under_bf16_autocast_emits_no_warning(bf16: None, preset: str) -> None:
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error::UserWarning", "-c", STEP.format(preset=preset)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
