"""Run folders of an earlier version open, resume, evaluate and predict.

tests/fixtures/runs-of-0.1.tar.gz holds tiny runs made by version 0.1.0 before folders were put in layers (commit
80fdcf8): one of every kind, two that were stopped by SIGTERM, a comparison of language models, one of classifiers, and
a sweep. `@HERE@` stands for the folder they were made in.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch

from attnlab.data.tasks.labelled import LabelledText
from attnlab.evaluation.evaluate import EvaluationOptions, evaluate_run
from attnlab.experiments.compare import gather, resume_comparison
from attnlab.experiments.experiment import COMPARISON, SWEEP
from attnlab.experiments.sweep import resume_sweep, sweep_results
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import KINDS, kind_of_run, saved_config
from attnlab.models.asking import answer
from attnlab.models.loading import TrainedGPT
from attnlab.models.pretrained.tuned import TunedClassifier, load_trained
from attnlab.runs import read_record, read_status
from attnlab.runs.listing import find_runs
from attnlab.runs.predictions import read_predictions

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "runs-of-0.1.tar.gz"
SINGLE = ("pretrain", "finetune", "masked", "language", "knowledge", "classify-full", "classify-lora", "classify-head")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for name in ("run.json", "config.yaml", "results.json"):
        for file in folder.rglob(name):
            file.write_text(file.read_text(encoding="utf-8").replace("@HERE@", str(folder)), encoding="utf-8")
    return folder


@pytest.fixture
def old(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(unpacked)  # the base model is named by a relative path, as it was typed
    yield unpacked


def test_all_are_listed(old: Path, attnlab: Callable[..., CompletedProcess[str]]) -> None:
    done = attnlab("runs", "--in", old, "--json")
    assert done.returncode == 0, done.stderr
    listed = {Path(run["path"]).name: run for run in json.loads(done.stdout)}
    assert {*SINGLE, "compare", "sweep"} <= set(listed) and len(listed) <= len(list(find_runs(old)))
    assert listed["finetune"]["state"] == "finished" and listed["pretrain-stopped"]["state"] == "interrupted"


@pytest.mark.parametrize("name", SINGLE)
def test_its_model_is_loaded_by_the_job_of_its_kind(old: Path, name: str) -> None:
    trained = KINDS[kind_of_run(old / name).name].job().load(old / name)
    expected = TunedClassifier if name.startswith("classify") else TrainedGPT
    assert isinstance(trained, expected) or name == "masked"
    assert all(torch.isfinite(weight).all() for weight in trained.model.parameters())
    if isinstance(trained, TrainedGPT):
        (reply,) = answer(trained.model, trained.vocabulary, ["Where was Ann born?"])
        assert 0 <= reply.confidence <= 1


@pytest.mark.parametrize("name", ["classify-full", "classify-lora", "classify-head"])
def test_a_classifier_predicts_what_it_predicted(old: Path, name: str) -> None:
    lines = [json.loads(line) for line in (old / name / "predictions-test.jsonl").read_text().splitlines()]
    trained = load_trained(old / name, "cpu")
    texts = trained.encode([LabelledText(line["text"], 0) for line in lines])
    probabilities = trained.logits(texts).softmax(-1)
    for line, row in zip(lines, probabilities, strict=True):
        place = trained.classes.index(line["said"])
        assert float(row[place]) == pytest.approx(line["probability"], abs=5e-3)  # they were computed in 16 bits
    assert read_predictions(old / name) is not None


def test_answers_are_evaluated(old: Path, tmp_path: Path) -> None:
    done = evaluate_run(old / "finetune", EvaluationOptions(questions=old / "world" / "test.tsv", out=tmp_path / "e"))
    assert done.count > 0 and (tmp_path / "e" / "results.json").is_file()


@pytest.mark.parametrize("name", ["pretrain-stopped", "classify-stopped"])
def test_a_stopped_run_is_resumed(old: Path, name: str) -> None:
    """The vocabulary of its pretraining has question words, which a new run on that corpus would not have."""
    before = max(int(path.name[5:]) for path in (old / name / "checkpoints").glob("step-*"))
    kind = kind_of_run(old / name)
    kind.job()(saved_config(old / name)).run(RunOptions(old / name, resume=True))
    record = read_record(old / name)
    assert 0 < before < record["training"]["step"] == record["steps"] and len(record["resumed"]) == 1
    assert read_status(old / name)["state"] == "finished"


@pytest.mark.parametrize("name", ["compare", "compare-classify"])
def test_a_comparison_is_read_and_takes_more_seeds(old: Path, name: str) -> None:
    config = COMPARISON.saved(old / name)
    rows = gather(old / name, config).rows
    assert [len(row.runs) for row in rows] == [2, 2]
    config.compare.seeds = 3
    resume_comparison(old / name, config)
    assert [len(row.runs) for row in gather(old / name, config).rows] == [3, 3]


def test_a_sweep_is_read_and_takes_more_values(old: Path) -> None:
    pytest.importorskip("optuna")
    results, tested = sweep_results(old / "sweep")
    assert len(results.finished) == 2 and tested is not None and tested.scores
    config = SWEEP.saved(old / "sweep")
    config.sweep.vary = {"optimizer.lr": ["1e-4", "1e-3", "1e-2"]}
    resume_sweep(old / "sweep", config)
    assert len(sweep_results(old / "sweep")[0].finished) == 3
