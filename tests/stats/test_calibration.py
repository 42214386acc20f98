"""The measures of a confidence, against values worked out by hand and against another definition."""

import itertools

import numpy as np
import pytest

from attnlab.stats.calibration import (
    Abstention,
    Area,
    area,
    best_threshold,
    bins,
    calibration_error,
    coverage,
    temperature,
    threshold_for,
)

CONFIDENCE = [0.95, 0.9, 0.9, 0.6, 0.3, 0.05, 1.0]
RIGHT = [True, True, False, True, False, False, True]


def test_bins_hold_every_answer_once_and_the_error_is_their_mean_gap() -> None:
    groups = bins(CONFIDENCE, RIGHT)
    assert [(group.low, group.count, group.right) for group in groups] == [
        (0.0, 1, 0),
        (0.3, 1, 0),
        (0.6, 1, 1),
        (0.9, 4, 3),
    ]
    by_hand = (0.05 + 0.3 + (1 - 0.6) + 4 * abs(0.75 - (0.95 + 0.9 + 0.9 + 1.0) / 4)) / 7
    assert calibration_error(groups) == pytest.approx(by_hand)


def test_a_model_that_is_as_sure_as_it_is_right_has_a_small_error() -> None:
    random = np.random.default_rng(0)
    confidence = random.uniform(size=20_000)
    right = random.uniform(size=20_000) < confidence
    assert calibration_error(bins(confidence.tolist(), right.tolist())) < 0.02
    assert calibration_error(bins((confidence**0.25).tolist(), right.tolist())) > 0.2


def test_the_area_is_the_share_of_pairs_in_the_right_order() -> None:
    good = [c for c, r in zip(CONFIDENCE, RIGHT, strict=True) if r]
    bad = [c for c, r in zip(CONFIDENCE, RIGHT, strict=True) if not r]
    pairs = [(g > b) + 0.5 * (g == b) for g, b in itertools.product(good, bad)]
    assert area(CONFIDENCE, RIGHT) == pytest.approx(sum(pairs) / len(pairs))
    assert np.isnan(area([0.5, 0.6], [True, True]))


def test_the_interval_holds_the_area_and_shrinks_with_more_questions() -> None:
    random = np.random.default_rng(1)

    def interval(count: int) -> Area:
        right = random.uniform(size=count) < 0.5
        return Area.of((right + random.normal(size=count)).tolist(), right.tolist())

    few, many = interval(40), interval(4000)
    true = 0.760  # Φ(1/√2): two normals one deviation apart
    assert few.low < true < few.high and many.low < true < many.high
    assert many.high - many.low < (few.high - few.low) / 4


def test_coverage_keeps_equal_confidences_together() -> None:
    shares, accuracy = coverage(CONFIDENCE, RIGHT)
    assert shares == pytest.approx([1 / 7, 2 / 7, 4 / 7, 5 / 7, 6 / 7, 1])
    assert accuracy == pytest.approx([1, 1, 3 / 4, 4 / 5, 4 / 6, 4 / 7])


def test_abstaining_counts_every_answer_once() -> None:
    found = Abstention.at(0.6, CONFIDENCE, RIGHT)
    assert (found.answered, found.right, found.wrong_avoided, found.right_lost) == (5, 4, 2, 0)
    everything = Abstention.at(0.0, CONFIDENCE, RIGHT)
    assert everything.answered == everything.questions == 7


def test_the_threshold_reaches_the_wish_with_as_many_answers_as_it_can() -> None:
    threshold = threshold_for(0.8, CONFIDENCE, RIGHT)
    assert threshold == 0.6
    assert Abstention.at(threshold, CONFIDENCE, RIGHT).accuracy.share >= 0.8
    assert threshold_for(0.9, CONFIDENCE, RIGHT) == 0.95
    assert threshold_for(0.8, [0.9, 0.9], [True, False]) is None


def test_the_best_threshold_is_that_of_the_roc_curve() -> None:
    from sklearn.metrics import roc_curve

    random = np.random.default_rng(0)
    good = random.random(400) < 0.3
    score = random.normal(size=400) + 1.5 * good
    false, true, _ = roc_curve(good, score)
    threshold = best_threshold(score.tolist(), good.tolist())
    reached = (score[good] >= threshold).mean() - (score[~good] >= threshold).mean()
    assert reached == pytest.approx((true - false).max())
    assert best_threshold([0.1, 0.2, 0.8], [False, False, True]) == pytest.approx(0.5)
    assert best_threshold([0.3, 0.3], [True, False]) == 0.3


def test_the_temperature_undoes_a_scaling_of_the_logits() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(4000, 3)) * 2
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = [int(random.choice(3, p=row)) for row in shares]
    assert temperature(logits * 5, labels) == pytest.approx(5, rel=0.1)
    assert temperature(logits / 4, labels) == pytest.approx(0.25, rel=0.1)


def test_a_few_right_answers_do_not_make_every_answer_certain() -> None:
    logits = np.array([[2.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    assert 0.5 < temperature(logits, [0, 1, 0]) < 1
