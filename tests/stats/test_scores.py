"""Scores agree with scikit-learn, and a classifier that tells nothing apart is found out."""

import pytest
import torch

from attnlab.stats.scores import Scores, macro_f1_interval

metrics = pytest.importorskip("sklearn.metrics")


def drawn(classes: int, count: int, seed: int) -> Scores:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    return Scores(torch.randn(count, classes, generator=generator) + torch.eye(classes)[labels], labels)


@pytest.mark.parametrize(("classes", "count"), [(2, 30), (3, 100), (7, 500), (5, 6)])
def test_scores_are_those_of_scikit_learn(classes: int, count: int) -> None:
    scores = drawn(classes, count, seed=classes)
    right, said, there = scores.labels.numpy(), scores.predicted.numpy(), sorted(set(scores.labels.tolist()))
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(right, said))
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(right, said, labels=there, average="macro"))
    assert (scores.confusion.numpy() == metrics.confusion_matrix(right, said, labels=range(classes))).all()
    assert scores.loss == pytest.approx(
        metrics.log_loss(right, scores.logits.softmax(-1).numpy(), labels=range(classes))
    )
    for place, score in enumerate(scores.by_class()):
        precision, recall, f1, support = metrics.precision_recall_fscore_support(
            right, said, labels=[place], average=None, zero_division=0.0
        )
        assert (score.precision, score.recall, score.f1) == pytest.approx((precision[0], recall[0], f1[0]))
        assert score.count == support[0]


def constant(labels: torch.Tensor, classes: int, place: int, exceptions: int = 0) -> Scores:
    logits = torch.zeros(len(labels), classes)
    logits[:, place] = 1.0
    logits[:exceptions] = torch.eye(classes)[labels[:exceptions]] * 2
    return Scores(logits, labels)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_always_the_same_class_is_a_collapse_however_good_it_looks(share: float) -> None:
    labels = (torch.arange(1000) < 1000 * share).long()
    assert constant(labels, 2, 1).collapsed  # accuracy is `share`
    assert constant(labels, 2, 0).collapsed
    assert constant(labels, 2, 1, exceptions=10).collapsed


def test_a_good_classifier_of_rare_things_is_none() -> None:
    labels = (torch.arange(1000) < 985).long()  # nearly all are of one class, and so is what is said
    good = Scores(torch.eye(2)[labels], labels)
    assert good.favourite[1] >= 0.98 and good.accuracy == 1.0 and not good.collapsed
    assert not drawn(2, 100, seed=0).collapsed


def test_the_interval_of_macro_f1_covers_what_larger_sets_show() -> None:
    """95 of 100 intervals from 200 examples should hold the value of 100,000; chance leaves a few more or fewer."""
    truth = drawn(3, 100_000, seed=0).macro_f1
    found = [macro_f1_interval(drawn(3, 200, seed=seed).confusion.numpy(), draws=200) for seed in range(1, 41)]
    assert sum(low <= truth <= high for low, high in found) >= 34
    assert all(0.05 < high - low < 0.25 for low, high in found)
