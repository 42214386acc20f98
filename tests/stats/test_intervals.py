"""Intervals against scipy and against published tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from attnlab.stats.intervals import ClusterMean, Mean, paired_difference


def test_students_interval_is_scipys() -> None:
    values = (1.93, 2.01, 1.97, 2.08)
    expected = scipy.stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=scipy.stats.sem(values))
    assert Mean(values).interval == pytest.approx(expected, rel=1e-12)
    assert Mean(values).deviation == pytest.approx(scipy.stats.tstd(values), rel=1e-12)


@pytest.mark.parametrize(("runs", "quantile"), [(2, 12.706), (3, 4.303), (5, 2.776), (11, 2.228)])
def test_the_quantiles_of_the_table(runs: int, quantile: float) -> None:
    """t(0.975) with n - 1 degrees of freedom, from any table of Student's distribution."""
    mean = Mean(tuple(float(n) for n in range(runs)))
    assert mean.half_width is not None and mean.deviation is not None
    assert mean.half_width * math.sqrt(runs) / mean.deviation == pytest.approx(quantile, abs=5e-4)


def test_one_run_has_no_interval_and_proves_nothing() -> None:
    one = Mean((3.0,))
    assert one.mean == 3.0 and one.interval is None and one.half_width is None and not one.differs_from_zero


def test_no_run_is_not_a_number() -> None:
    assert math.isnan(Mean(()).mean) and Mean(()).interval is None


def test_a_paired_difference_is_scipys_paired_interval() -> None:
    ours, theirs = {0: 2.31, 1: 2.50, 2: 2.44}, {0: 2.20, 1: 2.41, 2: 2.32}
    found = paired_difference(ours, theirs)
    test = scipy.stats.ttest_rel(list(ours.values()), list(theirs.values()))
    low, high = test.confidence_interval(0.95)
    assert found.interval == pytest.approx((low, high), rel=1e-9)
    assert found.differs_from_zero == (test.pvalue < 0.05)


def test_pairing_sees_what_unpaired_intervals_hide() -> None:
    """Seeds differ by far more than the variants do, and the difference is still sure."""
    reference = {0: 1.0, 1: 2.0, 2: 3.0}
    better = {seed: value - 0.1 - 0.001 * seed for seed, value in reference.items()}
    overlap = Mean(tuple(better.values())).interval, Mean(tuple(reference.values())).interval
    assert overlap[0] is not None and overlap[1] is not None and overlap[0][1] > overlap[1][0]
    assert paired_difference(better, reference).differs_from_zero


def test_only_seeds_that_both_have_are_paired() -> None:
    assert paired_difference({0: 1.0, 2: 5.0}, {1: 0.0, 2: 4.0}).values == (1.0,)


def test_clusters_of_equal_size_are_a_mean_of_their_means() -> None:
    totals = (3.0, 5.5, 4.0, 9.0)
    found, plain = ClusterMean(totals, (2, 2, 2, 2)), Mean(tuple(total / 2 for total in totals))
    assert found.mean == pytest.approx(plain.mean) and found.interval == pytest.approx(plain.interval)
    assert ClusterMean((3.0,), (2,)).interval is None


def test_the_interval_over_clusters_holds_the_truth_as_often_as_it_says() -> None:
    """Items of a cluster share an offset; clusters have different sizes; the true mean is 0."""
    held, narrow = 0, 0
    for seed in range(300):
        draw = np.random.default_rng(seed)
        sizes = draw.integers(1, 30, size=25)
        items = [draw.normal(draw.normal(), 0.3, size=size) for size in sizes]
        low, high = ClusterMean(tuple(part.sum() for part in items), tuple(map(int, sizes))).interval
        held += low <= 0 <= high
        low, high = Mean(tuple(np.concatenate(items))).interval
        narrow += low <= 0 <= high
    assert 0.90 <= held / 300 <= 0.98
    assert narrow / 300 < 0.6  # as if all items were independent
