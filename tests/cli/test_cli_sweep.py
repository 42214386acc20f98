"""`attnlab sweep` as typed: killed and taken up again at its checkpoint, and one sentence for what is wrong."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab import cli
from attnlab.runs import read_record

STOP_AT = Path(__file__).parents[1] / "stop_at.py"
Attnlab = Callable[..., subprocess.CompletedProcess[str]]
SMALL = [
    "--set",
    "world.people=40",
    "--set",
    "world.places=6",
    "--set",
    "model.layers=1",
    "--set",
    "model.heads=2",
    "--set",
    "model.width=16",
    "--set",
    "model.context=64",
    "--set",
    "data.tokens=words",
    "--threads",
    "1",
    "--device",
    "cpu",
    "--precision",
    "fp32",
]


@pytest.mark.slow
def test_a_killed_sweep_goes_on_at_its_checkpoint(
    attnlab: Attnlab, cli_environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "sweep"
    words = ["sweep", "--job", "finetune", "--vary", "optimizer.lr=1e-3,1e-2", "--set", "training.epochs=24", *SMALL]
    in_the_first_trial = [str(int(signal.SIGKILL)), "10", "lr-0.001"]
    command = [sys.executable, str(STOP_AT), *in_the_first_trial, "--quiet", *words, "--run", str(folder)]
    done = subprocess.run(command, env=cli_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cut = folder / "trials" / "lr-0.001" / "seed-0"
    assert done.returncode == -signal.SIGKILL and not (folder / "trials" / "lr-0.01").exists()
    assert list(cut.glob("checkpoints/step-*"))

    resumed = attnlab("sweep", "--run", folder, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "requeued: its worker was lost" in resumed.stderr and "resuming after step" in resumed.stderr
    assert len(read_record(cut)["resumed"]) == 1 and "test accuracy" in resumed.stdout
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert [cell["state"] for cell in found["cells"]] == ["finished"] * 2
    assert len(found["test"]["test_accuracy"]["over_examples"]) == 2
    assert (folder / "figures" / "landscape.png").stat().st_size > 0


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """In this process: starting another one takes longer than what is asked of it."""
    monkeypatch.setattr(sys, "argv", ["attnlab", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def test_a_dry_run_says_what_would_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    grid = ["--vary", "lr=1e-4,5e-4,1e-3; training.epochs=5,7,9", "--seeds", "2"]
    assert run(monkeypatch, "sweep", "--job", "finetune", *grid, *SMALL, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "9 cells with 2 seeds each, 18 runs" in shown and "optimizer.lr: 0.0001, 0.0005, 0.001" in shown
    assert "for the steps of one run (lr=0.0001, epochs=5)" in shown
    drawn = ["--search", "guided", "--vary", "pretrain.optimizer.lr=1e-5..1e-3 log", "--seconds", "90"]
    assert run(monkeypatch, "sweep", "--job", "knowledge", *drawn, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "1e-05 to 0.001, on a log scale" in shown and "none started after 1:30" in shown and "not known" in shown
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "recipe.yaml").write_text(
        "sweep:\n  job: finetune\n  vary:\n    optimizer.lr: 2..1\n  search: random\n"
    )
    for words, sentence in (
        ([], "--vary is missing"),
        (["--vary", "optimizer.lrr=1,2"], "did you mean 'optimizer.lr'"),
        (["--vary", "lr=1e-3..1e-5", "--search", "random"], "is empty"),
        (["--vary", "weight_decay=0..1 log", "--search", "random"], "log range starts above 0"),
        (["--config", tmp_path / "recipe.yaml"], "is empty"),
        (["--vary", "lr=1,2", "--store", "redis://x"], "expected journal"),
        (["--vary", "lr=1,2", "--set", "batch.size=auto"], "give a number"),
        (["--job", "knowledge", "--vary", "world.people=40,50", "--prune", "median"], "consists of several runs"),
        (["--run", "empty", "--resume"], "is not a run folder"),
        (["--run", "none", "--worker"], "does not exist"),
        (["--worker"], "--worker needs --run"),
        (["--worker", "--run", "empty", "--seeds", "3"], "and nothing else"),
        (["--resume"], "--resume needs --run"),
        (["--retry-failed", "--vary", "lr=1,2"], "--retry-failed needs --resume"),
    ):
        assert run(monkeypatch, "sweep", *words) == 2
        told = capsys.readouterr().err
        assert sentence in told and told.count("\n") == 1, told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "recipe.yaml"]


def test_a_folder_of_another_kind_is_no_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind, words, sentence in (
        ("pretrain", ["sweep", "--run", tmp_path, "--resume"], "is a pretrain run, not a sweep"),
        ("sweep", ["resume", tmp_path], f"attnlab sweep --run {tmp_path} --resume"),
        ("sweep", ["sweep", "--run", tmp_path, "--worker"], "has no trials yet"),
    ):
        (tmp_path / "run.json").write_text(json.dumps({"kind": kind}))
        (tmp_path / "config.yaml").write_text("sweep: {job: finetune, vary: {optimizer.lr: [1, 2]}}\n")
        assert run(monkeypatch, *words) == 2
        assert sentence in capsys.readouterr().err


def test_what_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    vary = ["sweep", "--job", "finetune", "--vary", "lr=1,2", "--run", tmp_path / "never"]
    for missing, words, extra in (
        ("psycopg", ["--store", "postgresql://me@here/db"], "attnlab[postgres]"),
        ("optuna", [], "attnlab[search]"),
    ):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, gone=missing: None if name == gone else real(name)
        )
        assert run(monkeypatch, *vary, *words) == 2
        assert extra in capsys.readouterr().err and not (tmp_path / "never").exists()
