"""`--tune contrastive`: the body learns from pairs, the head is fitted to its vectors, and a run is a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tiny_models import tiny_model

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.jobs.classify.export import export
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.job import RunOptions
from attnlab.models.pretrained.tuned import load_trained
from attnlab.runs import read_metrics, read_record
from attnlab.stats.scores import Scores


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contrastive")
    tiny_model(folder / "tiny", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    rows = [
        f"{word} {subject} {verb} {judged}\t{label}"
        for word in ("the", "a", "this", "no")
        for subject in ("film", "plot")
        for verb in ("is", "was")
        for judged, label in (("very good", "yes"), ("bad", "no"))
    ]
    (folder / "rows.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return folder


def config(place: Path, **changes: Any) -> ClassifyConfig:
    settings = {
        "data": {"task": str(place / "rows.tsv")},
        "model": {"name": str(place / "tiny")},
        "tuning": {"method": "contrastive"},
        "optimizer": {"lr": 3e-3},
        "batch": {"size": 4},
        "training": {"epochs": 8, "keep": 2, "log_every": 1},
        "machine": {"device": "cpu", "threads": 1, "precision": "fp32"},
        "watch": {"baselines": False},
    }
    for section, values in changes.items():
        settings[section] = {**settings.get(section, {}), **values}
    checked: ClassifyConfig = check(ClassifyConfig, settings)
    return checked


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    path = ClassifyJob(config(place)).run(RunOptions(place / "run"))
    assert path is not None
    return path


def test_the_pairs_are_learned_and_the_stored_head_is_that_of_the_best_body(run: Path) -> None:
    losses = [line["loss"] for line in read_metrics(run / "metrics.jsonl") if line["split"] == "train"]
    assert losses[-1] < losses[0] / 2
    results, trained = read_record(run)["results"], load_trained(run, "cpu")
    assert trained.config.batch.by_length is False
    assert results["dev_accuracy"] == 1.0 and results["test_accuracy"] == 1.0
    examples = trained.read(Path(str(trained.config.data.task))).examples
    scores = Scores(trained.logits(trained.encode(examples)), torch.tensor([example.label for example in examples]))
    assert scores.accuracy == 1.0  # a head that is not fitted is near a half


def test_a_run_that_was_stopped_ends_with_the_same_weights(place: Path, run: Path) -> None:
    from attnlab.runs.checkpoints import load_best

    short = config(place, training={"save_every": "1 steps"})

    class Stop(Exception):
        pass

    job = ClassifyJob(short)
    build = job.build

    def stopping(device: str) -> Any:
        parts = build(device)
        measured, calls = parts.evaluate, []

        def evaluate(model: Any) -> dict[str, float]:
            calls.append(1)
            if len(calls) == 2:
                raise Stop
            assert measured is not None
            return measured(model)

        parts.evaluate = evaluate
        return parts

    job.build = stopping  # type: ignore[method-assign]
    with pytest.raises(Stop):
        job.run(RunOptions(place / "stopped"))
    ClassifyJob(short).run(RunOptions(place / "stopped", resume=True))
    whole, resumed = load_trained(run, "cpu").model, load_trained(place / "stopped", "cpu").model
    load_best(resumed, place / "stopped")
    load_best(whole, run)
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name


def test_its_export_gives_the_same_classes_without_its_base_model(place: Path, run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "export")
    ours, theirs = load_trained(run, "cpu"), load_trained(tmp_path / "export", "cpu")
    examples = ours.read(Path(str(ours.config.data.task))).examples
    torch.testing.assert_close(
        theirs.logits(theirs.encode(examples)), ours.logits(ours.encode(examples)), atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"joint": {"mlm": "texts.txt"}}, "learns from pairs"),
        ({"tuning": {"method": "contrastive", "adversarial": 0.1}}, "learns from pairs"),
        ({"model": {"head": "dense"}}, "learns from pairs"),
        ({"optimizer": {"lr": "auto"}}, "no loss on dev"),
        ({"training": {"evaluate_every": "0 epochs"}}, "fits its head at every evaluation"),
        ({"machine": {"processes": 2}}, "one process must hold them"),
    ],
)
def test_what_does_not_go_with_pairs_is_refused(place: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        config(place, **changes)
