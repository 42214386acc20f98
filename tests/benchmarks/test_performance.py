"""The page of all benchmarks: every row with its ratio and aim, and no path of the machine that measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def performance(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("performance")


def test_every_script_exists_and_every_aim_belongs_to_a_known_job(performance: Any) -> None:
    for benchmark in performance.BENCHMARKS.values():
        assert (BENCHMARKS / benchmark.words.split()[0]).is_file()
        assert benchmark.words.split()[0] != "performance.py"


def test_rows_are_read_from_what_a_benchmark_writes(performance: Any) -> None:
    wall = {"ratio": 1.5, "low": 1.25, "high": 2.0}
    rows = list(
        performance.pretraining(
            {
                "ratios": [{"of": "lab vanilla", "to": "transformers gpt2", "wall": wall}],
                "sides": [{"side": "lab vanilla", "share_of_peak": {"wall": 0.625}}],
            }
        )
    )
    assert [row.shown() for row in rows] == ["1.50 (1.25 to 2.00)", "62.50%"]
    assert rows[0].what in performance.BENCHMARKS["pretraining"].aims


def test_the_page_names_the_load_and_hides_where_checkouts_are(
    performance: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [performance.Row("lab vanilla / nanoGPT", 1.4, 1.3, 1.5)]

    def measured(name: str, options: str) -> Any:
        return performance.Measured(name, f"python benchmarks/checkouts.py{options}", rows, 60.0, 1.0)

    monkeypatch.setattr(performance, "measure", measured)
    monkeypatch.setattr(performance.os, "getloadavg", lambda: (3.0, 3.0, 3.0))
    out = tmp_path / "performance.md"
    performance.main(["--only", "checkouts", "--nanogpt", "/somewhere/of mine", "--out", str(out)])
    page = out.read_text(encoding="utf-8")
    assert "| lab vanilla / nanoGPT | 1.40 (1.30 to 1.50) | 1.45 | 1.0 GiB |" in page
    assert "The machine was busy" in page and "somewhere" not in page and "--nanogpt CHECKOUT" in page
    out.unlink()
    performance.main(["--only", "checkouts", "--out", str(out)])  # no checkout is named: nothing to measure
    assert "nanoGPT" not in out.read_text(encoding="utf-8")


def test_a_benchmark_that_fails_ends_the_session(performance: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = performance.Benchmark("sampling.py --length 0", performance.sampling, {})
    monkeypatch.setitem(performance.BENCHMARKS, "sampling", broken)
    with pytest.raises(SystemExit, match="failed with exit code 2"):
        performance.measure("sampling", "")
