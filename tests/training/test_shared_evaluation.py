"""Several processes share an evaluation: scores equal to the last digit, half of the work each, an error in all."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from attnlab.distributed.team import ALONE, shared, sharing
from attnlab.launch.processes import run_processes


@pytest.mark.slow
def test_two_processes_share_the_batches(
    tmp_path: Path, cli_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", cli_environment["PYTHONPATH"])
    worker = Path(__file__).parent / "evaluation_worker.py"
    assert run_processes(2, [sys.executable, str(worker), str(tmp_path)], None) == 0
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1))
    assert first["same"] and second["same"]
    assert abs(first["passes"] - second["passes"]) <= 1
    assert first["passes"] + second["passes"] == first["alone"] == 56
    assert first["error"] and second["error"] and "three" in first["error"] + second["error"]


def test_one_process_does_everything_in_order() -> None:
    with sharing(ALONE, nullcontext):
        assert shared(range(5), lambda n: n * n) == [0, 1, 4, 9, 16]
    with pytest.raises(ZeroDivisionError):
        shared([0], lambda n: 1 // n)
