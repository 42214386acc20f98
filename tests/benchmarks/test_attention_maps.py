"""The benchmark of attention maps, once over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tiny_models import tiny_model

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "attention_maps.py"


@pytest.mark.slow
def test_it_times_all_sides_on_a_text_of_the_length(tmp_path: Path, cli_environment: dict[str, str]) -> None:
    words = ["--model", tiny_model(tmp_path / "model"), "--tokens", 12, "--repeats", 1, "--json", tmp_path / "out.json"]
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    done = subprocess.run(command, env=cli_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out.json").read_text())
    assert set(results["seconds"]) == {"plain forward pass", "maps", "eager"} and results["tokens"] <= 12
    assert all(value > 0 for value in results["seconds"].values())
