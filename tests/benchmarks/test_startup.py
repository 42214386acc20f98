"""The benchmark of the start of the command line, once over: what it times is what it names."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "startup.py"


@pytest.fixture(scope="module")
def startup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("startup", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_answers(startup: ModuleType, tmp_path: Path, cli_environment: dict[str, str]) -> None:
    startup.write_runs(tmp_path / "runs", 2)
    expected = {
        "attnlab --help": "Many runs",
        "attnlab <TAB>": "pretrain",
        "attnlab classify --<TAB>": "--task",
        "attnlab runs": "2026-01-01-000001-classify",
    }
    for name, (command, variables) in startup.commands(tmp_path / "runs").items():
        done = subprocess.run(command, env={**cli_environment, **variables}, capture_output=True, text=True)
        assert done.returncode == 0, (name, done.stderr)
        assert expected.get(name, "") in done.stdout, name


def test_it_prints_and_writes_medians(tmp_path: Path, cli_environment: dict[str, str]) -> None:
    words = ["--repeats", "1", "--runs", "2", "--json", str(tmp_path / "out.json")]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], env=cli_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    medians = json.loads((tmp_path / "out.json").read_text())["seconds"]
    assert all(value > 0 for value in medians.values()) and "attnlab runs" in done.stdout
