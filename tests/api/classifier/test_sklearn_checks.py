"""scikit-learn's own checks of an estimator, `check_estimator`, on texts that stand for its numbers.

They generate tables of numbers, so `NumbersAsTexts` writes every row as words before `Classifier` sees it. With that
all of them can run, except those in `EXCLUDED`. Checks of sparse matrices, NaN and numbers of features test only that
such input is refused, which here is the work of `validate_data`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils import Tags, get_tags
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data
from tests.api.classifier.conftest import QUICK
from tests.tiny_models import WORDS

from attnlab.api.classifier import Classifier


class NumbersAsTexts(Classifier):
    """A classifier of numbers: each becomes one of the words that the tiny model knows, by its size."""

    def fit(self, X: Any, y: object = None, **options: object) -> NumbersAsTexts:
        return super().fit(self.written(X, reset=True), y, **options)

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return super().predict_proba(self.written(X, reset=False))

    def written(self, X: Any, reset: bool) -> list[str]:
        rows = np.round(validate_data(self, X, reset=reset) * 3 + 10).astype(int) % len(WORDS)  # (N, features)
        return [" ".join(WORDS[number] for number in row[:6]) for row in rows]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        return tags


def checks(legacy: bool) -> dict[str, Callable[[Any], None]]:
    """The checks by name; `legacy` are all, otherwise those of the interface alone."""
    return {name(check): check for _, check in estimator_checks_generator(NumbersAsTexts(), legacy=legacy)}


def name(check: Any) -> str:
    parts: list[str] = []
    while isinstance(check, functools.partial):
        parts += [f"{key}={value}" for key, value in check.keywords.items()]
        check = check.func
    return "-".join([check.__name__, *parts])


EXCLUDED = {
    "check_classifiers_train": "asks for 83% accuracy on points in a plane, of which words are a poor description; "
    "that a classifier learns, and what it returns, is in test_classifier.py"
}
INTERFACE = checks(legacy=False)
OTHERS = {
    title: check
    for title, check in checks(legacy=True).items()
    if title not in INTERFACE and title.partition("-")[0] not in EXCLUDED
}


@pytest.fixture
def estimator(model: Path, tmp_path: Path) -> Iterator[NumbersAsTexts]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # untrained classifiers collapse
        yield NumbersAsTexts(
            model, tune="head", steps=1, lr=0.3, device="cpu", runs=tmp_path, verbose=False, settings=QUICK
        )


@pytest.mark.parametrize("title", INTERFACE)
def test_interface(title: str, estimator: NumbersAsTexts) -> None:
    INTERFACE[title](estimator)


@pytest.mark.slow
@pytest.mark.parametrize("title", OTHERS)
def test_behaviour(title: str, estimator: NumbersAsTexts) -> None:
    OTHERS[title](estimator)


def test_a_broken_estimator_is_caught(estimator: NumbersAsTexts) -> None:
    class Forgetful(NumbersAsTexts):
        def fit(self, X: Any, y: object = None, **options: object) -> Any:
            super().fit(X, y, **options)

    broken = Forgetful(**estimator.get_params())
    with pytest.raises(AssertionError):
        INTERFACE["check_estimators_fit_returns_self"](broken)


def test_it_tells_scikit_learn_that_it_reads_texts(make: Callable[..., Classifier]) -> None:
    tags = get_tags(make())
    assert tags.input_tags.string and tags.input_tags.one_d_array and not tags.input_tags.two_d_array
    assert tags.estimator_type == "classifier" and tags.target_tags.required
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_estimator(make())  # all that it can do with an estimator of texts: clone it
    assert any("Can't test estimator" in str(warning.message) for warning in caught)
