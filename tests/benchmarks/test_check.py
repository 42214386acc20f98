"""The benchmark of the check, once over: the file it times is right, so that every check is made."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "check.py"


def test_both_sides_are_timed(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("check_benchmark", SCRIPT)
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    path = tmp_path / "right.py"
    path.write_text(benchmark.FUNCTIONS, encoding="utf-8")
    times = benchmark.measure(1, path)  # a file that fails ends it with an error
    assert set(times) == {benchmark.PEER, benchmark.CHECK, benchmark.WARM}
    assert all(len(values) == 1 and values[0] > 0 for values in times.values())
