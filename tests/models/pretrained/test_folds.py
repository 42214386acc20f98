"""Cross-validation: every row is tested once; killed between folds it ends as one that was never stopped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.jobs.classify import folds
from attnlab.jobs.classify.job import ClassifyJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import saved_config
from attnlab.runs import read_record, read_status
from attnlab.runs.predictions import read_predictions

Make = Callable[..., Path]
ROWS = 36


@pytest.fixture
def file(tmp_path: Path) -> Path:
    words = {"good": ("good", "lovely", "warm"), "bad": ("bad", "dull", "grim")}
    rows = [f"the {('film', 'book')[n % 2]} is {words[label][n % 3]} {'very ' * (n // 6)}\t{label}"
            for n in range(ROWS // 2) for label in words]  # fmt: skip
    path = tmp_path / "reviews.tsv"
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return path


def settings(model: Path, file: Path, **data: object) -> ClassifyConfig:
    return check(
        ClassifyConfig,
        {
            "data": {"task": str(file), "max_tokens": 16, "folds": 3, **data},
            "model": {"name": str(model)},
            "optimizer": {"lr": 0.005},
            "batch": {"size": 8},
            "training": {"epochs": 2},
        },
    )


def test_every_row_is_tested_once_and_the_page_shows_the_folds(tmp_path: Path, tiny_model: Make, file: Path) -> None:
    run = ClassifyJob(settings(tiny_model("bert"), file)).run(RunOptions(tmp_path / "runs" / "cv"))
    assert run is not None
    own, beside = read_predictions(run), read_predictions(run / "baselines" / "tfidf")
    assert own is not None and beside is not None and own.examples == beside.examples
    assert "Beside baselines" in (run / "report.html").read_text()
    assert run is not None and read_status(run)["state"] == "finished"
    texts = [json.loads(line)["text"] for line in (run / "predictions-test.jsonl").read_text().splitlines()]
    assert Counter(texts) == Counter(line.split("\t")[0] for line in file.read_text().splitlines()[1:])
    each = [read_record(run / "folds" / str(number))["results"]["test_accuracy"] for number in (1, 2, 3)]
    results = read_record(run)["results"]
    assert results["test_accuracy"] == pytest.approx(fmean(each)) and results["test_rows"] == ROWS
    assert results["test_interval_low"] <= results["test_accuracy"] <= results["test_interval_high"]
    page = (run / "report.html").read_text()
    assert "mean, over folds (95%)" in page and "Nadeau and Bengio" in page
    with pytest.raises(UserError, match="has a model per fold"):
        ClassifyJob.load(run)
    assert ClassifyJob.load(run / "folds" / "1").run == run / "folds" / "1"


def test_killed_between_two_folds_it_goes_on(
    tmp_path: Path, tiny_model: Make, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tiny_model("bert"), file)
    whole = ClassifyJob(config).run(RunOptions(tmp_path / "whole"))
    start, path = folds.run_subrun, tmp_path / "stopped"

    def stopped(kind: str, config: ClassifyConfig, *rest: object) -> None:
        if config.data.fold == 3:
            raise KeyboardInterrupt
        start(kind, config, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(folds, "run_subrun", stopped)
    with pytest.raises(KeyboardInterrupt):
        ClassifyJob(config).run(RunOptions(path))
    first = (path / "folds" / "1" / "run.json").read_bytes()
    monkeypatch.setattr(folds, "run_subrun", start)
    assert ClassifyJob(saved_config(path)).run(RunOptions(path, resume=True)) == path  # type: ignore[arg-type]
    assert (path / "folds" / "1" / "run.json").read_bytes() == first
    assert whole is not None and read_record(path)["results"] == read_record(whole)["results"]
    assert (path / "predictions-test.jsonl").read_bytes() == (whole / "predictions-test.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"task": "sentiment"}, "sentiment has splits of its own"),
        ({"fold": 4}, "data.fold is 4, and there are 3 folds"),
        ({"folds": None, "fold": 1}, "data.fold needs --folds"),
        ({"folds": 40}, "too few for 40 folds"),
    ],
)
def test_folds_that_cannot_be(
    tmp_path: Path, tiny_model: Make, file: Path, data: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        ClassifyJob(settings(tiny_model("bert"), file, **data)).run(RunOptions(tmp_path / "run"))
    assert not (tmp_path / "run").exists()
