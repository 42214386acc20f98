"""The benchmark of causal tracing, on a few people."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tracing.py"


@pytest.mark.slow
def test_it_times_both_sides(tmp_path: Path, cli_environment: dict[str, str]) -> None:
    words = ["--people", "6", "--draws", "1", "--threads", "1", "--json", str(tmp_path / "out.json")]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], env=cli_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out.json").read_text())
    assert (results["people"], results["draws"]) == (6, 1)
    assert results["limit"] == pytest.approx(180 * 6 / 500)
    assert results["times_faster"] > 0 and f"{results['seconds']:,.3f}" in done.stdout
