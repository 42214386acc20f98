"""The benchmark beside other repositories: their models are read from the folders that are named, and nowhere else."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
STAND_IN = """
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class GPTConfig:
    block_size: int
    vocab_size: int
    n_layer: int
    n_head: int
    n_embd: int
    dropout: float
    bias: bool

class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(config.vocab_size, config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, tokens, targets):
        logits = self.head(self.words(tokens))
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def configure_optimizers(self, weight_decay, learning_rate, betas, device_type):
        print("decayed parameter tensors: 2")
        return torch.optim.AdamW(self.parameters(), learning_rate, betas, weight_decay=weight_decay)
"""


@pytest.fixture
def checkouts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.delenv("ATTNLAB_DATA", raising=False)
    return importlib.import_module("checkouts")


def test_a_checkout_is_measured_beside_the_lab(
    checkouts: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_text(STAND_IN, encoding="utf-8")
    out, threads = tmp_path / "found.json", torch.get_num_threads()
    checkouts.main(["--nanogpt", str(tmp_path), "--quick", "--rounds", "2", "--steps", "1", "--json", str(out)])
    torch.set_num_threads(threads)
    found = json.loads(out.read_text(encoding="utf-8"))
    assert [side["side"] for side in found["sides"]] == ["lab vanilla", "lab modern", "nanoGPT"]
    assert all(side["padding"] == 0 for side in found["sides"])
    assert [(row["of"], row["to"]) for row in found["ratios"]] == [
        ("lab vanilla", "nanoGPT"),
        ("lab modern", "nanoGPT"),
    ]
    printed = capsys.readouterr().out
    assert "lab vanilla / nanoGPT" in printed and "decayed" not in printed


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to compare with"),
        (["--nanogpt", "."], "is no checkout of nanoGPT: model.py is missing"),
        (["--mingpt", "."], "is no checkout of minGPT: mingpt/model.py is missing"),
    ],
)
def test_what_is_no_checkout_is_refused(
    checkouts: Any,
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        checkouts.main(words)
    assert stopped.value.code == 2 and sentence in capsys.readouterr().err
