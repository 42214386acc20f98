"""Tests between classifiers, against scipy, against cases computed by hand, and against their own promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from attnlab.stats.significance import Discordant, bootstrap, holm


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (5, 5), (3, 12), (40, 60), (0, 9)])
def test_mcnemar_is_the_binomial_test_on_what_only_one_got_right(first: int, second: int) -> None:
    expected = scipy.stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert Discordant(first, second).p == pytest.approx(expected, rel=1e-9)


def test_mcnemar_by_hand() -> None:
    """Ten throws, one head or fewer, or nine or more: 2 (1 + 10) / 1024."""
    assert Discordant(1, 9).p == pytest.approx(22 / 1024, rel=1e-12)
    one, two = np.array([1, 1, 1, 0, 0], bool), np.array([1, 0, 0, 1, 0], bool)
    assert Discordant.of(one, two) == Discordant(2, 1)


def test_holm_by_hand() -> None:
    """The example of three tests: 3 x 0.01, 2 x 0.02 raised to what came before it, 1 x 0.04."""
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_a_bootstrap_over_examples_agrees_with_the_normal_interval() -> None:
    draw = np.random.default_rng(1)
    first, second = draw.random((1, 4000)) < 0.8, draw.random((1, 4000)) < 0.7
    difference = first.astype(float) - second
    error = difference.std() / np.sqrt(4000)
    low, high = bootstrap(first, second)
    assert low == pytest.approx(difference.mean() - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(difference.mean() + 1.96 * error, abs=0.15 * error)
    assert bootstrap(first, second) == (low, high) and bootstrap(second, first) == pytest.approx((-high, -low))


def test_a_bootstrap_over_seeds_is_wider_when_seeds_disagree() -> None:
    """Each seed of the first is all right or all wrong: the examples alone would look sure."""
    first, second = np.zeros((4, 200), bool), np.zeros((4, 200), bool)
    first[:2] = True
    assert bootstrap(first, second) == (0.0, 1.0)
    assert bootstrap(first[:1], second[:1]) == (1.0, 1.0)


def test_two_equal_classifiers_are_rarely_told_apart() -> None:
    """Of many pairs that differ by chance alone, no more than one in twenty is called different."""
    draw = np.random.default_rng(2)
    pairs = [(draw.random(150) < 0.8, draw.random(150) < 0.8) for _ in range(400)]
    assert np.mean([Discordant.of(one, two).p <= 0.05 for one, two in pairs]) <= 0.05
