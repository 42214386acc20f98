"""Logistic regression ends where its gradient is zero; counted words are those of scikit-learn, and survive a file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attnlab.data.tasks.labelled import LabelledText
from attnlab.models.linear.logistic import choose_c, fit_logistic, fit_vectors
from attnlab.models.linear.model import SparseLinear, SparseRows, WordReader
from attnlab.models.linear.tfidf import BLOCKS, Tfidf
from attnlab.models.pretrained.classifier import predict

TEXTS = ["A good film, a very good one", "a bad film", "No plot. No actors!", "the plot was good", "bad, bad actors"]
LABELS = [1, 0, 0, 1, 0]


def points(classes: int, count: int = 60) -> tuple[np.ndarray, list[int]]:
    random = np.random.default_rng(0)
    labels = random.integers(classes, size=count)
    return random.normal(size=(count, 5)) * [1, 2, 3, 4, 50] + labels[:, None], labels.tolist()


@pytest.mark.parametrize("classes", [2, 4])
def test_the_gradient_of_what_is_minimized_is_zero_where_it_ends(classes: int) -> None:
    rows, labels = points(classes)
    rows = rows / rows.std(0)
    found = fit_logistic(rows, labels, classes, [1.0, 3.0, 1.0, 2.0][:classes])
    weight = torch.tensor(found.weight, requires_grad=True)
    bias = torch.tensor(found.bias, requires_grad=True)
    logits = torch.from_numpy(rows) @ weight.T + bias
    each = torch.nn.functional.cross_entropy(logits, torch.tensor(labels), reduction="none")
    weights = torch.tensor([1.0, 3.0, 1.0, 2.0])[torch.tensor(labels)]
    assert found.c is not None
    # of two classes scikit-learn punishes the difference of both rows, which is |W|² · 2 for these
    penalty = weight.square().sum() / 2 * (2 if classes == 2 else 1)
    (found.c * (weights * each).sum() + penalty).backward()
    assert weight.grad is not None and weight.grad.abs().max() < 1e-2 * found.c
    assert bias.grad is not None and bias.grad.abs().max() < 1e-2 * found.c


def test_vectors_are_scaled_and_the_weights_are_for_the_vectors_as_given() -> None:
    rows, labels = points(3)
    found = fit_vectors(rows, labels, 3)
    theirs = make_pipeline(StandardScaler(), LogisticRegression(C=found.c, tol=1e-8, max_iter=5000)).fit(rows, labels)
    ours = torch.from_numpy(rows @ found.weight.T + found.bias).softmax(-1).numpy()
    assert np.allclose(ours, theirs.predict_proba(rows), atol=1e-3)


def test_the_weight_decay_is_strong_where_labels_are_chance_and_weak_where_they_are_not() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(80, 20))
    ones = np.ones(80)
    assert choose_c(rows, random.integers(2, size=80), ones) <= 0.1
    assert choose_c(rows, (rows[:, 0] > 0).astype(int), ones) >= 1


def test_one_class_and_classes_without_rows_have_a_probability_too() -> None:
    rows = np.eye(4)
    only = fit_logistic(rows, [2, 2, 2, 2], 3)
    assert (rows @ only.weight.T + only.bias).argmax(1).tolist() == [2, 2, 2, 2]
    two = fit_logistic(rows, [0, 2, 0, 2], 3)
    shares = torch.from_numpy(rows @ two.weight.T + two.bias).softmax(-1)
    assert (shares[:, 1] < 1e-6).all() and (shares[:, [0, 2]] > 1e-3).all()


def test_the_vectors_are_those_of_scikit_learn() -> None:
    words = Tfidf.of([LabelledText(text, 0) for text in TEXTS])
    theirs = hstack(
        [TfidfVectorizer(sublinear_tf=True, **settings).fit_transform(TEXTS) for settings in BLOCKS.values()]
    )
    ours = words([LabelledText(text, 0) for text in TEXTS])
    assert ours.shape == theirs.shape and abs(ours - theirs).max() < 1e-6
    again = Tfidf.from_json(words.to_json())
    assert abs(again([LabelledText("an unknown plot", 0)]) - words([LabelledText("an unknown plot", 0)])).max() == 0


def test_a_pair_has_both_texts_and_what_they_share() -> None:
    pairs = [LabelledText("a good film", 0, "the film"), LabelledText("bad plot", 1, "good actors")]
    words = Tfidf.of(pairs)
    rows, third = words(pairs), words.width // 3
    assert rows[:, 2 * third :].getnnz(1).tolist()[0] > 0  # "film"
    same = words([LabelledText("good", 0, "good")])
    assert abs(same[:, :third] - same[:, 2 * third :]).max() == 0
    assert rows[1, 2 * third :].nnz < rows[0, 2 * third :].nnz


def test_batches_of_sparse_rows_give_the_matrix_product() -> None:
    reader = WordReader(Tfidf.of([LabelledText(text, 0) for text in TEXTS]))
    rows = reader.encode([LabelledText(text, label) for text, label in [*zip(TEXTS, LABELS, strict=True), ("§", 0)]])
    model = SparseLinear(reader.width, 2)
    fitted = fit_logistic(rows.matrix, rows.labels, 2)
    model.take(fitted)
    expected = rows.matrix @ fitted.weight.T + fitted.bias
    assert np.allclose(predict(model, rows, "cpu", batch=2).numpy(), expected, atol=1e-5)
    assert isinstance(rows, SparseRows) and rows.matrix[len(TEXTS)].nnz == 0  # a text without a known word


def test_a_vocabulary_that_was_changed_is_refused() -> None:
    content = json.loads(Tfidf.of([LabelledText("a film", 0)]).to_json())
    content["idf"]["words"].pop()
    with pytest.raises(ValueError, match="do not belong together"):
        Tfidf.from_json(json.dumps(content))
