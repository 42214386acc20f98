"""The wheel, installed into an empty environment, runs the demo from an empty folder."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def call(*words: object, cwd: Path, timeout: float) -> str:
    done = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_runs_the_demo_from_an_empty_folder(tmp_path: Path) -> None:
    call(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path, timeout=300)
    (wheel,) = (tmp_path / "dist").glob("attnlab-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python, empty = tmp_path / "env" / "bin" / "python", tmp_path / "empty"
    empty.mkdir()
    constraints = ["--disable-pip-version-check", "--quiet", "--constraint", ROOT / "constraints.txt"]
    call(python, "-m", "pip", "install", *constraints, f"attnlab[demo] @ {wheel.as_uri()}", cwd=empty, timeout=3600)
    lab = tmp_path / "env" / "bin" / "attnlab"
    assert "knowledge-pretrain" in call(lab, "recipes", cwd=empty, timeout=600)
    dry = call(lab, "pretrain", "-c", "knowledge-pretrain", "--people", 20, "--dry-run", cwd=empty, timeout=300)
    assert "dry run: nothing was written" in dry and not list(empty.iterdir())
    printed = call(lab, "demo", "--out", "shown", cwd=empty, timeout=3600)
    assert "report.html" in printed and (empty / "shown" / "report.html").stat().st_size > 100_000
