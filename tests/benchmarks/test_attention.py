"""The benchmark of attention, at sizes that take no time: what it compares and what it writes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.attention import VARIANTS, MixerShape, build_mixer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "attention.py"


def run(environment: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


@pytest.fixture(scope="module")
def written(cli_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run leaves behind. The memory budget is too small for `additive` at the longest length."""
    out = tmp_path_factory.mktemp("cost")
    done = run(
        cli_environment,
        "--variants",
        "vanilla,additive,linear",
        "--lengths",
        "64,128,256",
        "--repeats",
        3,
        "--width",
        16,
        "--heads",
        2,
        "--megabytes",
        6,
        "--out",
        out,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return {"out": out, "printed": done.stdout, "results": results}


def cells(written: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(side["name"], cell["length"]): cell for side in written["results"]["sides"] for cell in side["cells"]}


def test_every_side_is_measured_at_every_length_in_every_round(written: dict[str, Any]) -> None:
    sides = ["torch-fused", "gpt2-sdpa", "gpt2-eager", "vanilla", "additive", "linear"]
    assert set(cells(written)) == {(side, length) for side in sides for length in (64, 128, 256)}
    for key, cell in cells(written).items():
        if key != ("additive", 256):
            assert len(cell["forward"]) == len(cell["backward"]) == 3
            assert min(*cell["forward"], *cell["backward"], cell["megabytes"]) > 0


def test_what_would_burst_the_budget_is_skipped_and_said(written: dict[str, Any]) -> None:
    assert [key for key, cell in cells(written).items() if "skipped" in cell] == [("additive", 256)]
    assert "additive at T = 256 was skipped: it would need about" in written["printed"]


def test_the_results_give_the_same_table_again(written: dict[str, Any], importable: None) -> None:
    again = importlib.import_module("attention_cells").from_json(written["results"]["sides"])
    assert importlib.import_module("attention_report").tables(again).strip() == written["printed"].strip()


def test_the_table_has_a_row_for_each_side_and_ratios_to_the_peers(written: dict[str, Any]) -> None:
    table = (written["out"] / "table.md").read_text(encoding="utf-8")
    assert table.strip() == written["printed"].strip()
    for title in ("### Time as a multiple of torch-fused", "### Peak memory as a multiple of torch-fused"):
        rows = table.partition(title)[2].split("###")[0].strip().splitlines()[2:]
        row = {
            line.split("|")[1].strip(): [part.strip() for part in line.split("|")[2:-1]] for line in rows if "|" in line
        }
        assert row["torch-fused"] == ["1.00"] * 3
        assert row["additive"][-1] == "–"
        assert float(row["additive"][1]) > 0


def test_memory_shows_the_promised_powers(written: dict[str, Any]) -> None:
    powers = written["results"]["exponents"]
    assert powers["linear"]["time_promised"] == powers["linear"]["memory_promised"] == 1
    assert powers["linear"]["memory"] < 1.3
    assert powers["additive"]["memory"] > 1.7


def test_the_figure_is_a_picture(written: dict[str, Any]) -> None:
    assert (written["out"] / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_a_variant_that_does_not_exist_is_one_sentence(cli_environment: dict[str, str], tmp_path: Path) -> None:
    done = run(cli_environment, "--variants", "lienar", "--lengths", "8", "--out", tmp_path / "none")
    assert done.returncode == 2
    assert "did you mean 'linear'?" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the script as Python sees it when it runs."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))


def test_the_peers_compute_what_vanilla_computes(importable: None) -> None:
    """With the same weights: the comparison is of the same layer."""
    shape = MixerShape(width=16, heads=4, context=12)
    torch.manual_seed(0)
    vanilla, x = build_mixer("vanilla", shape), torch.randn(2, 12, 16)
    weights = {name.split(".", 1)[-1] if "qkv" in name else name: p for name, p in vanilla.named_parameters()}
    for name, (build, _) in importlib.import_module("attention_peers").PEERS.items():
        peer = build(shape)
        own = dict(peer.named_parameters())
        with torch.no_grad():
            for ours, theirs in (("qkv", "block.c_attn"), ("output", "block.c_proj")):
                for part in ("weight", "bias"):
                    if f"{ours}.{part}" in own:
                        own[f"{ours}.{part}"].copy_(weights[f"{ours}.{part}"])
                    else:  # GPT-2 keeps its matrices the other way round
                        own[f"{theirs}.{part}"].copy_(weights[f"{ours}.{part}"].t())
        torch.testing.assert_close(peer(x), vanilla(x), msg=name)


def test_without_a_choice_every_variant_is_measured(importable: None) -> None:
    sides = importlib.import_module("attention").sides_of("all")
    assert {side.name for side in sides if not side.peer} == set(VARIANTS)
