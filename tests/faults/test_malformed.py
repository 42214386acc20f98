"""Malformed inputs, 200 of them; `python -m tests.faults.malformed` runs thousands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_malformed_input_ends_in_a_traceback_or_a_hang(cli_environment: dict[str, str]) -> None:
    """In a process of its own, which imports everything before it forks a child per case."""
    path = os.pathsep.join([str(ROOT), cli_environment["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.malformed", "--cases", "200", "--seed", "20"],
        capture_output=True,
        text=True,
        env=cli_environment | {"PYTHONPATH": path},
    )
    assert done.stdout.startswith("{"), done.stderr[-2000:]
    tally = json.loads(done.stdout)
    assert tally["failures"] == []
    assert tally["cases"] == 200 and tally["outcomes"]["refused"] > 50 and tally["outcomes"]["accepted"] > 20
