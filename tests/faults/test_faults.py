"""The harness of `make faults`: what it reports is what happened, and the lab survives a few of its faults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.faults.__main__ import _insert, _table
from tools.faults.family import Try

ROOT = Path(__file__).parents[2]

KILLED = """
import os, sys
from pathlib import Path
from tools.faults.operations import Kill, Operations
folder, at = Path(sys.argv[1]), int(sys.argv[2])
(folder / "flushed").write_bytes(b"old " * 100)
operations = Operations(folder, Kill(at, power_cut=True, seed=1), folder.parent / "count")
operations.watch()
with open(folder / "flushed", "ab") as file:      # 1
    file.write(b"new " * 100)
    file.flush()
    os.fsync(file.fileno())                        # 2
with open(folder / "lost", "wb") as file:          # 3
    file.write(b"new " * 100)
    file.flush()
    os.rename(folder / "lost", folder / "renamed") # 4
    (folder.parent / "elsewhere").write_text("")   # not below the folder
    os.mkdir(folder / "inner")                     # 5
operations.end()
"""


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6])
def test_a_child_ends_before_the_operation_that_was_drawn(tmp_path: Path, at: int) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(at)], cwd=ROOT)
    assert done.returncode == (-9 if at < 6 else 0)
    assert (folder / "lost").exists() == (at == 4)
    assert (folder / "renamed").exists() == (at > 4) and (folder / "inner").exists() == (at > 5)
    size = (folder / "flushed").stat().st_size
    assert size == 800 if at > 2 else 400 <= size <= 800
    if at == 5:
        assert (folder / "renamed").stat().st_size < 400, "what was not flushed is lost in part"
    if at == 6:
        assert (tmp_path / "count").read_text() == "5"


def test_the_table_counts_what_was_survived_and_is_put_between_its_marks(tmp_path: Path) -> None:
    tried = [Try("a kill", "at 3"), Try("a kill", "at 4", "the weights differ"), Try("a reader", "ask")]
    table = "\n".join(_table(tried, seed=9))
    assert "| a kill | 2 | 1 |" in table and "| a reader | 1 | 1 |" in table and "seed 9" in table
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- faults: begin -->\nold\n<!-- faults: end -->\nafter\n")
    _insert(page, table)
    assert page.read_text() == f"before\n<!-- faults: begin -->\n{table}\n<!-- faults: end -->\nafter\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", ["kills at file operations", "readers beside writers", "damaged run folders", "hostile files"]
)
def test_a_few_faults_of_every_family_are_survived(family: str) -> None:
    seed = str(int.from_bytes(os.urandom(4)))
    done = subprocess.run(
        [sys.executable, "-m", "tools.faults", "--only", family, "--most", "8", "--minutes", "10", "--seed", seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}\n{done.stderr}"
