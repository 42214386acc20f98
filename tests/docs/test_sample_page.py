"""docs/sample.md: its commands and its Python run as printed, one after the other."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tiny_models import tiny_model

PAGE = (Path(__file__).parents[2] / "docs" / "sample.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (attnlab .*)$", PAGE, re.MULTILINE)
Run = Callable[..., subprocess.CompletedProcess[str]]
SMALL = ["--layers", 1, "--heads", 2, "--width", 16, "--device", "cpu", "--precision", "fp32", "--sample-length", 20]
LABELLED = "text\tlabel\n" + "".join(f"film {n} was {word}\t{word}\n" for n in range(12) for word in ("good", "bad"))


@pytest.mark.slow
def test_commands_and_python_run_as_printed(attnlab: Run, cli_environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("The cat sat. A dog ran.\n" * 120, encoding="utf-8")
    (tmp_path / "held-out.txt").write_text("A cat ran. The dog sat.\n" * 12, encoding="utf-8")
    (tmp_path / "labelled.tsv").write_text(LABELLED, encoding="utf-8")
    words = ["classify", "--model", tiny_model(tmp_path / "base"), "--task", "labelled.tsv", "--steps", 2]
    done = attnlab(*words, "--device", "cpu", "--precision", "fp32", "--run", "runs/my-classifier", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(COMMANDS) == 10
    for command in COMMANDS:
        words = shlex.split(command)[1:]
        if words[0] == "language":
            words = [*words[: words.index("--steps")], "--steps", "8", *words[words.index("--run") :], *map(str, SMALL)]
        done = attnlab(*words, cwd=tmp_path)
        assert done.returncode == 0 and done.stdout.strip(), f"{command}: {done.stderr}"
    (python,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", python], cwd=tmp_path, env=cli_environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
