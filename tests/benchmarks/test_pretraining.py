"""The benchmark of pretraining at a toy size: what it compares and what it writes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.models.gpt import preset

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "pretraining.py"


@pytest.fixture
def benchmark_module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return importlib.import_module("pretraining")


def run(environment: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def test_a_quick_run_compares_all_sides(cli_environment: dict[str, str], tmp_path: Path, benchmark_module: Any) -> None:
    environment = {name: value for name, value in cli_environment.items() if name != "ATTNLAB_DATA"}
    out = tmp_path / "found.json"
    done = run(environment, "--quick", "--rounds", 2, "--steps", 1, "--batch-size", 4, "--threads", 1, "--json", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert benchmark_module.tables(found).strip() in done.stdout
    names = ["lab vanilla", "transformers gpt2", "lab modern", "lab vanilla, by length"]
    assert [side["side"] for side in found["sides"]] == names and list(found["what"]) == names
    for side in found["sides"]:
        assert 0 < side["useful_per_second"] <= side["positions_per_second"]
        assert 0 < side["share_of_peak"]["wall"] < 1
    for ratio in found["ratios"]:
        assert 0 < ratio["wall"]["low"] <= ratio["wall"]["ratio"] <= ratio["wall"]["high"]


def test_numbers_that_cannot_be_are_refused(benchmark_module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        benchmark_module.main(["--rounds", "0"])
    assert stopped.value.code == 2 and "must be at least 1" in capsys.readouterr().err


def test_the_peer_has_the_same_matrices_and_the_same_targets(benchmark_module: Any) -> None:
    """Both start at the entropy of a guess, over the same targets, and the products are those that are counted."""
    padded, by_length, vocabulary = benchmark_module.batches_of(
        ["abcd efgh " * 3, "bcdefgha", "hgfe dcba"] * 4, 16, 4, 2
    )
    shape = preset("vanilla", vocabulary, layers=2, heads=2, width=8, context=16, dropout=0.0)
    ours = benchmark_module.lab_side("lab vanilla", shape, padded)
    peer = benchmark_module.peer_side(shape, padded)
    guess = torch.tensor(float(vocabulary)).log()
    for side in (ours, peer):
        torch.testing.assert_close(side.loss(padded[0]).detach(), guess, atol=0.1, rtol=0)
    sizes = [
        sum(p.numel() for p in side.learning if p.ndim == 2 and 8 in p.shape and p.numel() >= 64)
        for side in (ours, peer)
    ]
    tied = vocabulary * 8  # GPT-2's head is its table of embeddings
    assert sizes[0] - sizes[1] == tied
    assert all(batch.inputs["tokens"].shape[1] == 16 for batch in padded)
    assert sum(b.positions for b in by_length) < sum(b.positions for b in padded)


def test_operations_are_those_torch_counts(benchmark_module: Any) -> None:
    """Of a training step of the open form of attention, which computes all of T × T: twice the causal half."""
    from torch.utils.flop_counter import FlopCounterMode

    padded, _, vocabulary = benchmark_module.batches_of(["abcd efgh " * 3] * 8, 16, 4, 1)
    shape = preset("vanilla", vocabulary, layers=2, heads=2, width=8, context=16, attention="pieces")
    side = benchmark_module.lab_side("lab vanilla", shape, padded)
    with FlopCounterMode(display=False) as counter:
        side.step(padded[0])
    attention = 6 * shape.layers * shape.context * shape.width
    assert counter.get_total_flops() == padded[0].positions * (benchmark_module.operations(shape) + attention)
