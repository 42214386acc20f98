"""A resumed run is the one that was started; a report can be written anew at any time."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.base.errors import RunFailed, UserError
from attnlab.config import check
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.experiments.rewrite import rewrite_report
from attnlab.jobs import engine
from attnlab.jobs.engine import train_run
from attnlab.jobs.finetune import FinetuneJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.pretrain import PretrainJob
from attnlab.jobs.registry import KINDS, kind_of_run, saved_config
from attnlab.models.loading import load_gpt
from attnlab.runs import RunFolder, read_config, read_metrics, read_record, read_status

MODEL = {"layers": 1, "heads": 2, "width": 16, "context": 48}
MACHINE = {"threads": 1, "precision": "fp32", "device": "cpu"}


def settings(tmp_path: Path, **training: object) -> dict[str, object]:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat saw the dog\na dog saw a cat\nsix birds sing\n")
    return {
        "model": MODEL,
        "machine": MACHINE,
        "data": {"corpus": str(corpus), "tokens": "words"},
        "training": {"steps": 7, "save_every": "2", "log_every": 3, "keep": 4} | training,
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that is finished."""
    path = train_run(PretrainJob(check(PretrainConfig, settings(tmp_path))), RunOptions(tmp_path / "run"))
    assert path is not None
    return path


def interrupt(run: Path, step: int = 4) -> None:
    """As if the run had been killed after the checkpoint of a step."""
    (run / "status.json").write_text('{"state": "interrupted"}')
    for path in (run / "checkpoints").glob("step-*"):
        if int(path.name[5:]) > step:
            shutil.rmtree(path)


def resume(run: Path) -> None:
    kind_of_run(run).job()(saved_config(run)).run(RunOptions(run, resume=True))


def lines(run: Path) -> list[dict[str, object]]:
    timed = ("seconds", "examples_per_second", "tokens_per_second")
    return [{n: v for n, v in line.items() if n not in timed} for line in read_metrics(run / "metrics.jsonl")]


def test_metrics_are_those_of_a_run_that_was_never_stopped(run: Path) -> None:
    """A line covers three steps and a checkpoint two, so one line is logged from steps before and after the stop."""
    whole, weights = lines(run), newest(run)
    assert [line["step"] for line in whole] == [3, 6]
    interrupt(run)
    resume(run)
    assert lines(run) == whole and newest(run) == weights


def newest(run: Path) -> bytes:
    return (max((run / "checkpoints").glob("step-*")) / "model.safetensors").read_bytes()


def test_a_checkpoint_of_an_earlier_version_has_no_sums(run: Path) -> None:
    interrupt(run)
    for path in (run / "checkpoints").glob("step-*"):
        state = json.loads((path / "state.json").read_text())
        del state["window"]
        (path / "state.json").write_text(json.dumps(state))
        sums = json.loads((path / "checksums.json").read_text())
        sums["state.json"] = hashlib.sha256((path / "state.json").read_bytes()).hexdigest()
        (path / "checksums.json").write_text(json.dumps(sums))
    resume(run)
    assert read_status(run)["state"] == "finished" and [line["step"] for line in lines(run)] == [3, 6]


EDITS = [("lr: 0.001", "lr: 0.5"), ("name: adamw", "name: sgd"), ("  size: ", "  size: 1")]


@pytest.mark.parametrize(("old", "new"), EDITS)
def test_an_edited_setting_is_refused(run: Path, old: str, new: str) -> None:
    interrupt(run)
    config = run / "config.yaml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    with pytest.raises(UserError, match="but the run started with"):
        resume(run)
    with pytest.raises(UserError, match="but the run started with"):
        load_gpt(run)


def test_an_edit_that_is_allowed_is_recorded_once(run: Path) -> None:
    interrupt(run)
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("keep: 4", "keep: 1"))
    resume(run)
    interrupt(run, 7)
    resume(run)
    changes = [change for change in read_record(run)["changes"] if "training.keep" in change]
    assert changes == ["training.keep is 1 since the run was resumed, and was 4 before."]
    assert len(list((run / "checkpoints").glob("step-*"))) == 1


def test_more_steps_may_be_asked_of_a_finished_run(run: Path, attnlab: Callable[..., object]) -> None:
    done = attnlab("pretrain", "--run", run, "--resume", "--steps", 9)
    assert done.returncode == 0, done.stderr  # type: ignore[attr-defined]
    record = read_record(run)
    assert record["steps"] == record["training"]["step"] == 9 and read_config(run)["training"]["steps"] == 9
    assert any("training.steps is 9 since the run was resumed, and was 7" in change for change in record["changes"])
    fewer = attnlab("pretrain", "--run", run, "--resume", "--steps", 8)
    assert fewer.returncode == 2 and "keeps its configuration" in fewer.stderr  # type: ignore[attr-defined]


@pytest.mark.parametrize("damage", ["permuted", "missing", "cut"])
def test_a_damaged_vocabulary_is_refused_and_written_again_by_a_resume(run: Path, damage: str) -> None:
    interrupt(run)
    file = run / "vocabulary.json"
    before = file.read_text()
    tokens = json.loads(before)["tokens"]
    permuted = json.dumps({"level": "words", "tokens": [*tokens[:3], *reversed(tokens[3:])]})
    file.unlink() if damage == "missing" else file.write_text(permuted if damage == "permuted" else before[:20])
    with pytest.raises(UserError, match=r"vocabulary.json (is missing|was changed)"):
        load_gpt(run)
    resume(run)
    assert file.read_text() == before and load_gpt(run).vocabulary.tokens == tuple(tokens)


def test_a_start_run_that_was_trained_anew_is_noticed(run: Path, tmp_path: Path) -> None:
    questions = tmp_path / "train.tsv"
    questions.write_text("Where was Ada born?\tcat\n")
    config = {
        "start": {"run": str(run)},
        "machine": MACHINE,
        "data": {"train": str(questions)},
        "training": {"steps": 4, "save_every": "2"},
    }
    tuned = train_run(FinetuneJob(check(FinetuneConfig, config)), RunOptions(tmp_path / "tuned"))
    assert tuned is not None
    interrupt(tuned, 2)
    resume(tuned)
    interrupt(tuned, 2)
    other = check(PretrainConfig, settings(tmp_path, seed=5))
    train_run(PretrainJob(other), RunOptions(run, overwrite=True))
    with pytest.raises(UserError, match="the weights it starts from have changed"):
        resume(tuned)


def test_a_run_is_finished_after_its_report_is_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = (run / "report.html").read_text()
    interrupt(run)
    (run / "report.html").unlink()

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        assert read_status(run)["state"] == "running"
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(engine, "write_run_page", killed)
        resume(run)
    assert read_status(run)["state"] == "interrupted"
    resume(run)
    assert "pretrain run, finished" in report and "pretrain run, finished" in (run / "report.html").read_text()


def without_pictures(page: Path) -> str:
    """A picture has the time at which it was drawn."""
    return re.sub(r"base64,[^\"]+", "", page.read_text())


def test_a_report_is_written_anew(run: Path) -> None:
    before = without_pictures(run / "report.html")
    (run / "report.html").unlink()
    shutil.rmtree(run / "figures")
    assert without_pictures(rewrite_report(run)) == before and (run / "figures" / "loss.png").is_file()
    held = RunFolder.hold(run)
    with pytest.raises(UserError, match="in use"):
        rewrite_report(run)
    held.close()


def test_a_run_of_an_earlier_version_killed_in_its_start_is_completed(run: Path) -> None:
    """run.json was written before the vocabulary and the facts about the data."""
    record = json.loads((run / "run.json").read_text())
    for name in ("settings", "data", "files", "steps", "training", "results"):
        del record[name]
    (run / "run.json").write_text(json.dumps(record))
    for name in ("vocabulary.json", "status.json"):
        (run / name).unlink()
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(UserError, match=r"vocabulary\.json is missing"):
        load_gpt(run)
    resume(run)
    completed = read_record(run)
    assert completed["data"]["documents"] == 3 and "vocabulary.json" in completed["files"]
    assert KINDS["pretrain"].job().load(run) is not None


def test_metrics_that_cannot_be_written_are_one_sentence(run: Path) -> None:
    interrupt(run)
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").mkdir()
    with pytest.raises(RunFailed, match=r"metrics.jsonl could not be written: Is a directory"):
        resume(run)
    assert read_status(run)["state"] == "failed"


def test_lost_metrics_are_recorded(run: Path) -> None:
    interrupt(run)
    (run / "metrics.jsonl").unlink()
    resume(run)
    assert any("metrics.jsonl has 0 of" in change for change in read_record(run)["changes"])


@pytest.mark.parametrize("damage", [{"training": {"step": "x"}}, {"training": []}, {"random": 5}, {"window": {"a": 1}}])
def test_a_checkpoint_of_another_shape_is_one_sentence(run: Path, damage: dict[str, object]) -> None:
    interrupt(run)
    path = max((run / "checkpoints").glob("step-*"))
    (path / "state.json").write_text(json.dumps({**json.loads((path / "state.json").read_text()), **damage}))
    sums = json.loads((path / "checksums.json").read_text())
    sums["state.json"] = hashlib.sha256((path / "state.json").read_bytes()).hexdigest()
    (path / "checksums.json").write_text(json.dumps(sums))
    with pytest.raises(UserError, match="does not belong to this run"):
        resume(run)
