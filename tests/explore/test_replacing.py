"""One key changes, the query stays."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab import explore
from attnlab.explore.replacing import with_score

K, V = explore.example("selection").keys, explore.example("selection").values


@pytest.mark.parametrize("unit", [False, True])
def test_the_new_key_has_the_given_score(unit: bool) -> None:
    query = np.array([2.0, -1.0, 2.0])
    key = with_score(K[2], query, 1.5, unit)
    assert key @ query == pytest.approx(1.5)
    if unit:
        assert np.linalg.norm(key) == pytest.approx(1.0)
    else:
        assert np.cross(key - K[2], query) == pytest.approx([0, 0, 0], abs=1e-12), "the change is along the query"


def test_unequal_scores_leave_an_error_that_no_key_removes() -> None:
    query = 10 * K[:2].mean(axis=0)
    answer = explore.replace_key(K, V, query, 2, (0, 1, 2))
    target = V[:3].mean(axis=0)
    tried = []
    for key in np.random.default_rng(0).normal(0, 2, (4000, 3)):
        keys = K.copy()
        keys[2] = key
        tried.append(np.abs(explore.attend(query, keys, V) - target).max())
    assert 1e-4 < answer.error <= min(tried) + 1e-9


def test_a_unit_key_loses_to_a_longer_one_along_the_query() -> None:
    keys = np.array([[3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    answer = explore.replace_key(keys, np.eye(3), np.array([5.0, 0.0]), 2, (2,), unit=True)
    assert answer.new_key == pytest.approx([1.0, 0.0])
    assert answer.error > 0.99


def test_a_unit_key_can_average_when_its_score_is_within_reach() -> None:
    query = explore.average_some(K, V, (0, 1)).queries[0]
    answer = explore.replace_key(K, V, query, 2, (0, 1, 2), unit=True)
    assert np.linalg.norm(answer.new_key) == pytest.approx(1.0)
    assert answer.error < 1e-9


def test_without_a_limit_the_third_value_is_returned_exactly() -> None:
    query = explore.average_some(K, V, (0, 1)).queries[0]
    assert explore.replace_key(K, V, query, 2, (2,)).error < 1e-12
