"""`attnlab ask` and `attnlab evaluate` as a user types them."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.config.world import WorldSection
from attnlab.data.questions import Pair
from attnlab.data.world.world import world_of

Run = Callable[..., subprocess.CompletedProcess[str]]
TINY = ["--people", 12, "--places", 4, "--layers", 1, "--heads", 1, "--width", 16, "--context", 64, "--tokens", "words"]
MACHINE = ["--device", "cpu", "--precision", "fp32"]


@pytest.fixture(scope="module")
def asked(attnlab: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    assert attnlab("pretrain", *TINY, *MACHINE, "--steps", 4, "--run", root / "first").returncode == 0
    done = attnlab("finetune", "--from", root / "first", *MACHINE, "--epochs", 2, "--run", root / "second")
    assert done.returncode == 0, done.stderr
    return root / "second"


@pytest.fixture(scope="module")
def pair() -> Pair:
    return world_of(WorldSection(people=12, places=4)).questions("test")[0]


def test_ask_shows_the_confidence_the_trace_and_can_abstain(asked: Path, attnlab: Run, pair: Pair) -> None:
    done = attnlab("ask", asked, pair.question, "--trace", "--abstain-below", 1)
    assert done.returncode == 0, done.stderr
    first, kind, *lines = done.stdout.splitlines()
    assert first.startswith("I don't know  (confidence 0.")
    name = pair.question.removeprefix("Where was ").removesuffix(" born?")
    assert len(lines) >= 4 and all(name in line for line in lines)  # four documents tell of everybody
    marked = [line for line in lines if line.startswith("* line ")]
    assert kind.startswith("retrieved" if marked else "made up")


def test_evaluate_prints_accuracy_baseline_and_where_the_report_is(asked: Path, attnlab: Run, tmp_path: Path) -> None:
    done = attnlab("evaluate", asked, "--out", tmp_path / "out", "--unseen-names", 10)
    assert done.returncode == 0, done.stderr
    for part in ("accuracy: ", "most common place (", "AUC", "calibration error", "predictions: ", "report: "):
        assert part in done.stdout
    assert (tmp_path / "out" / "report.html").is_file()


def test_evaluate_accepts_the_older_name_of_unseen_names(asked: Path, attnlab: Run, tmp_path: Path) -> None:
    done = attnlab("evaluate", asked, "--out", tmp_path / "out", "--strangers", 0)
    assert done.returncode == 0, done.stderr
    assert "unseen names" not in done.stdout


def test_mistakes_are_one_sentence_and_exit_2(asked: Path, attnlab: Run, tmp_path: Path) -> None:
    for words, sentence in (
        (["evaluate", asked, "--abstain-below", 1.5], "abstain_below must be between 0 and 1, got 1.5."),
        (["ask", asked, "?", "--abstain-below", -0.1], "must be between 0 and 1, got -0.1"),
        (["evaluate", tmp_path / "nowhere"], "nowhere does not exist"),
        (["evaluate", asked, "--questions", "nowhere.tsv"], "nowhere.tsv does not exist"),
        (["ask", asked, "Where was " + "A " * 80 + "born?"], "more than the model's context of 64"),
    ):
        done = attnlab(*words, cwd=tmp_path)
        assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
