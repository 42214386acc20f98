"""The benchmark of classification, at sizes that take no time: what it compares and what it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.model import BertModel

pytestmark = pytest.mark.slow

pytest.importorskip("transformers")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "classification.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tokenizer = WordPiece.learn([example.text for example in load_sentiment()["train"]], 300)
    tokenizer.save_pretrained(folder)
    BertModel(BertConfig(len(tokenizer), 16, 1, 2, 32, 128)).save_pretrained(folder)
    return folder


def measure(environment: dict[str, str], model: Path, out: Path, *words: object) -> dict[str, Any]:
    every = ["--task", "sentiment", "--model", model, "--batch-size", 4, "--json", out, *words]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, every)], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_speed_and_the_head(model: Path, tmp_path: Path, cli_environment: dict[str, str]) -> None:
    found = measure(cli_environment, model, tmp_path / "out.json", "--steps", 2, "--repeats", 1, "--examples", 8)
    assert found["speed"]["examples"] == 8
    assert found["speed"]["ratio_low"] <= found["speed"]["ratio"] <= found["speed"]["ratio_high"]
    assert found["speed"]["lab_examples_per_second"] > 0
    head = found["head"]
    assert head["cached_seconds"] > 0
    assert abs(head["cached_dev_accuracy"] - head["every_epoch_dev_accuracy"]) < 0.2, "they learn the same head"


def test_accuracy_by_seed(model: Path, tmp_path: Path, cli_environment: dict[str, str]) -> None:
    words = ("--epochs", 1, "--seeds", 2, "--examples", 8, "--only", "trainer")
    found = measure(cli_environment, model, tmp_path / "out.json", *words)["accuracy"]
    for side in ("lab", "trainer"):
        assert len(found[f"{side}_dev_accuracies"]) == 2
        assert all(0 < value < 1 for value in found[f"{side}_dev_accuracies"])
    low, high = found["difference_interval"]
    assert low <= found["difference"] <= high
