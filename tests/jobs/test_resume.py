"""A run killed at any moment resumes and ends with the weights of a run that was never stopped, to the bit."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.seeds import drawn_seed

from attnlab.runs import read_metrics, read_record, read_status

Run = Callable[..., subprocess.CompletedProcess[str]]

STOP_AT = Path(__file__).parents[1] / "stop_at.py"
# Dropout, Muon, accumulation and evaluation are on: everything that has state takes part.
FLAGS = """
    pretrain --tokens words --people 24 --places 8 --layers 2 --heads 2 --width 32 --context 48 --preset vanilla
    --dropout 0.1 --optimizer muon --objective span --batch-size 8 --accumulate 2 --dev-share 0.2 --steps 40
    --evaluate-every 9 --save-every 3 --log-every 1 --device cpu --precision fp32 --threads 1 --seed 3
""".split()  # noqa: SIM905


def newest_weights(run: Path) -> bytes:
    return max((run / "checkpoints").glob("step-*")).joinpath("model.safetensors").read_bytes()


def best_weights(run: Path) -> tuple[str, bytes]:
    best = max((run / "checkpoints").glob("best-*"))
    return best.name, best.joinpath("model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, attnlab: Run) -> Path:
    """A run that is never stopped."""
    run = tmp_path_factory.mktemp("whole") / "run"
    done = attnlab(*FLAGS, "--run", run)
    assert done.returncode == 0, done.stderr
    return run


def kill_after(words: list[str], run: Path, steps: int, environment: dict[str, str], how: signal.Signals) -> int:
    """Run a real child that gets a signal once it has made `steps` more steps; returns its exit code."""
    command = [sys.executable, str(STOP_AT), str(int(how)), str(steps), run.name, *words]
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


@pytest.mark.slow
def test_killed_again_and_again_it_ends_with_the_same_weights(
    tmp_path: Path, whole: Path, attnlab: Run, cli_environment: dict[str, str]
) -> None:
    """SIGKILL at three random moments, each time resumed by another form of the command."""
    run = tmp_path / "run"
    seed = drawn_seed()
    moments = sorted(random.Random(seed).sample(range(2, 36), 3))
    words = [*FLAGS, "--run", str(run)]
    for moment in moments:
        assert kill_after(words, run, moment, cli_environment, signal.SIGKILL) == -signal.SIGKILL
        assert read_status(run)["state"] == "interrupted"
        words = ["resume", str(run)] if "resume" not in words else [*FLAGS, "--run", str(run), "--resume"]
    done = attnlab("resume", run)
    assert done.returncode == 0, done.stderr
    assert newest_weights(run) == newest_weights(whole)
    assert best_weights(run) == best_weights(whole)
    assert read_status(run)["state"] == "finished"
    steps = [(line["step"], line["split"]) for line in read_metrics(run / "metrics.jsonl")]
    assert steps == [(line["step"], line["split"]) for line in read_metrics(whole / "metrics.jsonl")]
    assert len(read_record(run)["resumed"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_saves_says_how_to_go_on_and_does(
    tmp_path: Path, whole: Path, attnlab: Run, cli_environment: dict[str, str], how: signal.Signals
) -> None:
    run = tmp_path / "run"
    assert kill_after([*FLAGS, "--run", str(run)], run, 5, cli_environment, how) == 128 + how
    assert read_status(run)["reason"] == f"stopped by {how.name}"
    done = attnlab("resume", run)
    assert done.returncode == 0, done.stderr
    assert newest_weights(run) == newest_weights(whole)


@pytest.mark.slow
def test_a_checkpoint_cut_short_is_named_and_the_one_before_is_used(
    tmp_path: Path, whole: Path, attnlab: Run, cli_environment: dict[str, str]
) -> None:
    run = tmp_path / "run"
    kill_after([*FLAGS, "--run", str(run)], run, 14, cli_environment, signal.SIGKILL)
    newest = max((run / "checkpoints").glob("step-*"))
    file = newest / "optimizer.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    done = attnlab("resume", run)
    assert done.returncode == 0, done.stderr
    assert f"{newest.name} is damaged (optimizer.safetensors does not match its checksum)" in done.stderr
    assert newest_weights(run) == newest_weights(whole)


def test_a_finished_run_and_changed_settings_are_refused(whole: Path, attnlab: Run) -> None:
    finished = attnlab("resume", whole)
    assert finished.returncode == 2 and "is finished" in finished.stderr
    status = whole / "status.json"
    before = status.read_text()
    try:
        status.write_text(json.dumps({**json.loads(before), "state": "interrupted"}))
        changed = attnlab("pretrain", "--run", whole, "--resume", "--lr", "0.5")
        assert changed.returncode == 2
        assert "a resumed run keeps its configuration, and optimizer.lr is 0.001 there, not 0.5" in changed.stderr
    finally:
        status.write_text(before)


def test_changed_data_is_refused(tmp_path: Path, attnlab: Run) -> None:
    corpus, run = tmp_path / "corpus.txt", tmp_path / "run"
    corpus.write_text("one two three four five\nsix seven eight nine ten\n")
    flags = ["--layers", 1, "--heads", 1, "--width", 8, "--steps", 2, "--precision", "fp32", "--device", "cpu"]
    assert attnlab("pretrain", "--corpus", corpus, "--run", run, *flags).returncode == 0
    (run / "status.json").write_text('{"state": "interrupted"}')
    corpus.write_text("one two three four five\nsix seven eight nine eleven\n")
    done = attnlab("resume", run)
    assert done.returncode == 2 and "has changed since the run started" in done.stderr
