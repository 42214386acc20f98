"""The tools of scikit-learn take a `Classifier` for one of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from attnlab.api.classifier import Classifier
from attnlab.runs import is_run, read_config

Make = Callable[..., Classifier]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def runs_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if is_run(path))


def lower(texts: list[str]) -> list[str]:
    return [text.lower() for text in texts]


def test_grid_search(make: Make, texts: list[str], labels: list[str], tmp_path: Path) -> None:
    grid = {"lr": np.array([1e-9, 0.02]), "tune": ["full"]}
    search = GridSearchCV(make(steps=40), grid, cv=2, error_score="raise").fit(texts, labels)
    assert search.best_params_ == {"lr": 0.02, "tune": "full"}
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] > scores[0] and search.best_estimator_.lr == 0.02
    assert search.predict(["good", "bad"]).tolist() == ["pos", "neg"]
    found = runs_below(tmp_path / "runs")  # 2 rates, 2 folds, and the best on all texts
    assert len(found) == 5 and search.best_estimator_.run_ == found[-1]
    assert sorted(read_config(run)["optimizer"]["lr"] for run in found) == [1e-9, 1e-9, 0.02, 0.02, 0.02]


@pytest.mark.slow
def test_parallel_fits_do_not_meet(make: Make, texts: list[str], labels: list[str], tmp_path: Path) -> None:
    scores = cross_val_score(make(steps=1), texts, labels, cv=4, n_jobs=2, error_score="raise")
    assert scores.shape == (4,) and len(runs_below(tmp_path / "runs")) == 4


def test_cross_validation(make: Make, texts: list[str], labels: list[str], tmp_path: Path) -> None:
    made = make(steps=1)
    predicted = cross_val_predict(made, np.array(texts), labels, cv=2, method="predict_proba")
    np.testing.assert_allclose(predicted.sum(1), 1)
    folds = [runs_below(tmp_path / "runs")[n] for n in range(2)]
    read = [(run / "inputs" / f"{split}.jsonl").read_text().count("\n") for run in folds for split in ("train", "dev")]
    assert read == [18, 2, 18, 2] and not hasattr(made, "run_")


def test_pipeline_and_vote(make: Make, texts: list[str], labels: list[str]) -> None:
    louder = [text.upper() for text in texts]
    piped = make_pipeline(FunctionTransformer(lower), make(steps=1)).fit(louder, labels)
    np.testing.assert_array_equal(piped.predict_proba(louder), make(steps=1).fit(texts, labels).predict_proba(texts))
    vote = VotingClassifier([("one", piped), ("two", make(steps=1, random_state=1))], voting="soft").fit(texts, labels)
    assert vote.predict(np.array(texts)).shape == (40,) and vote.classes_.tolist() == ["neg", "pos"]
