"""The page shows what the command really prints."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attnlab
from attnlab.check.judge.protection import MEANING, PROTECTIONS

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_page_is_real_output(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    blocks = re.search(r"```python\n(.*?)```\n\n```text\n\$ attnlab check mine\.py --seed 1\n(.*?)```", page, re.DOTALL)
    assert blocks, "docs/check.md has lost its example"
    (tmp_path / "mine.py").write_text(blocks[1], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "attnlab", "check", "mine.py", "--seed", "1"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(attnlab.__file__).parent.parent),
            "COLUMNS": "100",
            "PYTHONIOENCODING": "utf-8",
        },
    )
    printed = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    *shown, protection = blocks[2].rstrip().splitlines()
    assert printed[:-1] == shown
    assert {printed[-1], protection} <= {f"It was run {meaning}. Seed 1." for meaning in MEANING.values()}


def test_the_loop_over_a_class_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(from pathlib.*?)```", page, re.DOTALL)
    assert example, "docs/check.md has lost its loop"
    (tmp_path / "submissions").mkdir()
    for name in ("alan.py", "grace.py"):
        (tmp_path / "submissions" / name).write_text("def attn_softmax(A):\n    return A.softmax(-1)\n")
    done = subprocess.run(
        [sys.executable, "-c", example[1]],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(Path(attnlab.__file__).parent.parent)},
    )
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["alan.py fails", "grace.py fails"], done.stderr
    assert {line[1] for line in lines} <= set(PROTECTIONS)


def test_the_options_of_the_page_work(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    (tmp_path / "mine.py").write_text("def attn_softmax(A):\n    return A.softmax(-1)\n")
    cell = {"cell_type": "code", "source": "def attn_softmax(A):\n    return A.softmax(-1)\n"}
    (tmp_path / "A2S2.ipynb").write_text(json.dumps({"cells": [cell]}))
    lines = re.findall(r"^    attnlab (check .*?)(?:  +#.*)?$", page, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        done = subprocess.run(
            [sys.executable, "-m", "attnlab", *line.split()],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": str(Path(attnlab.__file__).parent.parent)},
        )
        assert done.returncode == 1 and "attn_softmax" in done.stdout, (line, done.stderr)
    assert len((tmp_path / "done.jsonl").read_text().splitlines()) >= 18


def test_the_loop_of_the_shell_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    loop, count = re.findall(r"^    ((?:for file|jq) .*)$", page, re.MULTILINE)
    (tmp_path / "submissions").mkdir()
    (tmp_path / "submissions" / "alan.py").write_text("def attn_softmax(A):\n    return A.softmax(-2)\n")
    command = tmp_path / "attnlab"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m attnlab "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(Path(attnlab.__file__).parent.parent)}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    subprocess.run(["/bin/sh", "-c", loop], cwd=tmp_path, env=environment, check=False)
    found = json.loads((tmp_path / "submissions" / "alan.json").read_text())
    assert "softmax-over-queries" in {result["mistake"] for result in found["results"]}
    if shutil.which("jq"):
        done = subprocess.run(["/bin/sh", "-c", count], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert "softmax-over-queries" in done.stdout
