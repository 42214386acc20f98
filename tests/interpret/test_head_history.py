"""`attnlab heads`, and the scores at the checkpoints of a run, which are those of its weights then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app
from attnlab.data.text.repeats import repeated_strings
from attnlab.interpret.head_history import score_checkpoints
from attnlab.interpret.heads import score_heads
from attnlab.interpret.subject import open_subject
from attnlab.runs.checkpoints import load_weights, read_checkpoint

TINY = [
    "--steps",
    "4",
    "--save-every",
    "2",
    "--evaluate-every",
    "2",
    "--width",
    "16",
    "--batch-size",
    "4",
    "--device",
    "cpu",
    "--threads",
    "1",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads")
    (folder / "repeats.txt").write_text(repeated_strings(3000), encoding="utf-8")
    words = ["language", "--config", "induction", "--corpus", str(folder / "repeats.txt"), "--run", str(folder / "run")]
    done = CliRunner().invoke(app, [*words, *TINY])
    assert done.exit_code == 0, done.output
    return folder / "run"


def test_every_checkpoint_is_scored_with_its_own_weights(run: Path) -> None:
    history = score_checkpoints(run, draws=3)
    assert history.steps == [2, 4] and history.loss[0] == [2, 4]
    for step, report in zip(history.steps, history.reports, strict=True):
        subject = open_subject(run)
        load_weights(subject.model, read_checkpoint(run / "checkpoints" / f"step-{step:08d}").tensors["model"])
        assert report.rows() == score_heads(subject, draws=3).rows()
    assert history.reports[0].rows() != history.reports[1].rows()
    rows = history.rows()
    assert {row["step"] for row in rows} == {2, 4} and len(rows) == 2 * 5 * 8
    best = max(row["score"] for row in rows if row["step"] == 4 and row["kind"] == "induction")
    assert history.strongest("induction")[1] == best


def test_the_command_prints_the_strongest_heads_and_draws_all(run: Path, tmp_path: Path) -> None:
    figure = tmp_path / "heads.png"
    text = ["--text", str(run.parent / "repeats.txt"), "--figure", str(figure)]
    done = CliRunner().invoke(app, ["heads", str(run), *text, "--top", "2", "--draws", "3"])
    assert done.exit_code == 0, done.output
    assert figure.read_bytes().startswith(b"\x89PNG")
    (layer, head), mean = score_heads(open_subject(run), draws=3).scores("induction").strongest(1)[0]
    line = next(line for line in done.stdout.splitlines() if "induction" in line)
    assert f" {layer}.{head} " in line and f" {mean.mean:.3f} " in line
    assert "random tokens: 3 sequences of 64 tokens" in done.stdout


def test_json_is_that_of_the_functions(run: Path) -> None:
    words = ["heads", str(run), "--draws", "3", "--json"]
    printed = json.loads(CliRunner().invoke(app, words).stdout)
    assert printed == json.loads(json.dumps(score_heads(open_subject(run), draws=3).rows()))
    by_step = json.loads(CliRunner().invoke(app, [*words, "--checkpoints"]).stdout)
    assert by_step == json.loads(json.dumps(score_checkpoints(run, draws=3).rows()))


def test_the_scores_by_step_stand_beside_the_loss(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["heads", str(run), "--checkpoints", "--figure", str(tmp_path / "by-step.png")])
    assert done.exit_code == 0 and "dev loss" in done.stdout
    assert (tmp_path / "by-step.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("heads RUN --length 99", "--length 99 is not possible here: give 4 to 32, half of the context."),
        ("heads RUN --text missing.txt", "missing.txt does not exist: check the name."),
        ("heads RUN --figure heads.xyz", "heads.xyz: unknown figure format 'xyz': choose from"),
        ("heads minilm --checkpoints", "minilm is no run: only a run has checkpoints."),
        ("data repeats RUN", "exists: give the name of a new file."),
        ("data repeats nowhere/repeats.txt", "nowhere/repeats.txt: the folder nowhere does not exist"),
    ],
)
def test_mistakes_are_one_sentence(run: Path, words: str, sentence: str) -> None:
    done = CliRunner().invoke(app, [str(run) if word == "RUN" else word for word in words.split()])
    assert isinstance(done.exception, UserError) and sentence in str(done.exception)


def test_a_run_without_checkpoints_is_one_sentence(run: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(run, tmp_path / "bare")
    for checkpoint in (bare / "checkpoints").glob("step-*"):
        shutil.rmtree(checkpoint)
    with pytest.raises(UserError, match="has kept no checkpoints: train it with --save-every and a large --keep"):
        score_checkpoints(bare)


def test_a_damaged_checkpoint_is_named(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "damaged")
    (copy / "checkpoints" / "step-00000002" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"step-00000002 cannot be scored: model.safetensors does not match"):
        score_checkpoints(copy)
