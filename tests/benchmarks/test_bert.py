"""The benchmark of BERT, at sizes that take no time: what it compares and what it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.model import BertModel

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bert.py"


def test_every_part_is_measured_on_sides_that_compute_the_same(tmp_path: Path, cli_environment: dict[str, str]) -> None:
    """The script itself refuses to time sides whose losses differ."""
    pytest.importorskip("transformers")
    folder, out = tmp_path / "model", tmp_path / "out.json"
    tokenizer = WordPiece.learn([example.text for example in load_sentiment()["train"]], 400)
    tokenizer.save_pretrained(folder)
    BertModel(BertConfig(len(tokenizer), 16, 1, 2, 32, 64)).save_pretrained(folder)
    words = ["--model", folder, "--texts", 12, "--size", 4, "--longest", 24, "--repeats", 1, "--json", out]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, words)],
        capture_output=True,
        text=True,
        env=cli_environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    for name in ("BertModel", "BertForSequenceClassification"):
        assert all(found["models"][name][side] > 0 for side in ("padded", "unpadded", "by length"))
    assert found["models"]["batches"]["padding_by_length"] <= found["models"]["batches"]["padding_random"]
    assert found["joint"]["ratio"] > 0
    assert found["tokenizer"]["ratio_again"] > 0
