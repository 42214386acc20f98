"""docs/interpret.md: its commands and its snippet run as printed, in order."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

Run = Callable[..., subprocess.CompletedProcess[str]]
PAGE = (Path(__file__).parents[2] / "docs" / "interpret.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## See attention")[2].partition("\n## ")[0]
SHAPE = ["--layers", 2, "--heads", 2, "--width", 16, "--context", 24, "--steps", 2, "--batch-size", 4]


@pytest.fixture(scope="module")
def folder(attnlab: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the two runs that the page names."""
    root = tmp_path_factory.mktemp("docs")
    (root / "text.txt").write_text("the cat sat on the mat. " * 60)
    for run, attention in (("my-run", "vanilla"), ("naive", "naive-mask")):
        words = ["--corpus", "text.txt", "--attention", attention, *SHAPE, "--run", f"runs/{run}"]
        done = attnlab("language", *words, "--device", "cpu", "--precision", "fp32", cwd=root)
        assert done.returncode == 0, done.stderr
    return root


def test_the_commands_run_as_printed(folder: Path, attnlab: Run) -> None:
    commands = [shlex.split(line) for line in re.findall(r"^    attnlab (.*)$", SECTION, re.MULTILINE)]
    assert len(commands) == 5
    printed = []
    for words in commands:
        done = attnlab(*words, cwd=folder)
        assert done.returncode == 0, (words, done.stderr)
        printed.append(done.stdout)
    assert (folder / "inspect.html").is_file() and (folder / "runs" / "my-run" / "inspect.html").is_file()
    assert (folder / "head.png").is_file()
    assert len(json.loads(printed[3])["attentions"]) == 1
    shown = re.search(r"```text\n(.*?)…\n```", SECTION, re.DOTALL)
    assert shown is not None and printed[4].startswith(shown[1].rstrip())


def test_the_snippets_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, recorder = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(compile(page, "docs/interpret.md", "exec"), {})
    assert "<attention-view>" in (folder / "page.html").read_text(encoding="utf-8")
    made: dict[str, Any] = {}
    exec(compile(recorder, "docs/interpret.md", "exec"), made)
    assert made["flow"]["blocks.0.attention.weights"].shape == (1, 2, 22, 22)
    assert not torch.equal(made["flow"].output, made["without"])
