"""`attnlab compare` as a person types it, and as a machine that is switched off leaves it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab import cli

STOP_AT = Path(__file__).parents[1] / "stop_at.py"
Attnlab = Callable[..., subprocess.CompletedProcess[str]]
SMALL = (
    "--layers",
    "1",
    "--heads",
    "2",
    "--width",
    "16",
    "--context",
    "16",
    "--batch-size",
    "4",
    "--dev-blocks",
    "8",
    "--prefix-blocks",
    "2",
    "--device",
    "cpu",
    "--precision",
    "fp32",
    "--threads",
    "1",
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = random.Random(0)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(" ".join(draw.choice(("to", "be", "or", "not")) for _ in range(1500)), encoding="utf-8")
    return path


def losses(comparison: Path) -> dict[str, Any]:
    """Every loss of every seed, to the last digit."""
    rows = json.loads((comparison / "results.json").read_text(encoding="utf-8"))["variants"]
    return {
        row["label"]: {name: row[name]["by_seed"] for name in ("train_loss", "dev_loss", "prefix_loss")} for row in rows
    }


@pytest.mark.slow
def test_a_killed_comparison_goes_on_as_if_nothing_had_happened(
    attnlab: Attnlab, cli_environment: dict[str, str], text: Path, tmp_path: Path
) -> None:
    words = [
        "compare",
        "--attention",
        "vanilla,linear",
        "--corpus",
        str(text),
        "--seeds",
        "1",
        "--steps",
        "200",
        "--evaluations",
        "10",
        "--dropout",
        "0.1",
        *SMALL,
    ]
    killed = tmp_path / "killed"
    in_the_second_cell = [str(int(signal.SIGKILL)), "60", str(Path("cells", "linear"))]
    command = [sys.executable, str(STOP_AT), *in_the_second_cell, "--quiet", *words, "--run", str(killed)]
    done = subprocess.run(command, env=cli_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL and not (killed / "results.json").exists()
    assert list((killed / "cells" / "linear" / "seed-0" / "checkpoints").glob("step-*"))
    first = (killed / "cells" / "vanilla" / "seed-0" / "run.json").stat().st_mtime_ns

    resumed = attnlab("compare", "--run", killed, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "linear, seed 0" in resumed.stderr and "vanilla, seed 0" not in resumed.stderr
    assert (killed / "cells" / "vanilla" / "seed-0" / "run.json").stat().st_mtime_ns == first
    whole = attnlab("-q", *words, "--run", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert losses(killed) == losses(tmp_path / "whole")
    assert "One seed" not in whole.stderr and "There is one seed: no interval" in whole.stdout


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """In this process: starting another one takes longer than what is asked of it."""
    monkeypatch.setattr(sys, "argv", ["attnlab", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def test_a_resumed_comparison_keeps_its_settings(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert run(monkeypatch, "compare", "--corpus", text, "--seeds", 1, "--steps", 2, *SMALL, "--run", folder) == 0
    assert f"report: {folder / 'report.html'}" in capsys.readouterr().out
    for words, sentence in (
        (["compare", "--run", folder, "--resume", "--lr", "0.5"], "keeps its configuration"),
        (["compare", "--run", folder, "--resume", "--overwrite"], "contradict"),
        (["compare", "--resume"], "--resume needs --run"),
        (["compare", "--corpus", text, *SMALL, "--run", folder], "already exists"),
        (["resume", folder], f"attnlab compare --run {folder} --resume"),
        (["compare", "--run", folder / "cells" / "vanilla" / "seed-0", "--resume"], "not a comparison"),
    ):
        assert run(monkeypatch, *words) == 2
        assert sentence in capsys.readouterr().err


def test_what_is_missing_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, sentence in (
        ([], "--corpus is missing"),
        (["--corpus", tmp_path / "none.txt"], "does not exist"),
        (["--attention", "mine.py"], "mine.py: give the path of a .py file"),
        (["--steps", "5", "--seconds", "5"], "exclude each other"),
    ):
        assert run(monkeypatch, "compare", *words) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
