"""One key changes, the query stays."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab import explore
from attnlab.base.errors import UserError
from attnlab.explore.exploration import vector
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


QUERY = explore.average_some(K, V, (0, 1)).queries[0]


@pytest.mark.parametrize(("index", "chosen"), [(0, (1, 3)), (2, (0,)), (2, (3,)), (1, (1, 2, 3))])
def test_an_impossible_target_is_explained_by_what_the_key_can_reach(index: int, chosen: tuple[int, ...]) -> None:
    answer = explore.replace_key(K, V, QUERY, index, chosen)
    assert not answer.reachable
    assert f"A new k{index} decides only the weight of v{index}" in answer.why
    without = explore.attend(QUERY, np.delete(K, index, axis=0), np.delete(V, index, axis=0))
    assert vector(without) in answer.why, "one end of what is reachable"
    # a fine grid over the whole segment finds nothing closer
    shares = np.linspace(0, 1, 20_001)[:, None]
    errors = np.abs((1 - shares) * without + shares * V[index] - answer.targets[0]).max(axis=1)
    assert answer.error == pytest.approx(errors.min(), abs=1e-4)
    assert answer.error <= errors.min() + 1e-12


def test_a_unit_key_that_is_too_short_is_explained_by_its_length() -> None:
    answer = explore.replace_key(K, V, np.ones(3), 2, (2,), unit=True)
    assert not answer.reachable
    assert "A key of length 1 scores at most ‖q‖ = 1.732" in answer.why
    assert f"and {answer.weights[0][2]:.3g} of the weight" in answer.why
    assert explore.replace_key(K, V, np.ones(3), 2, (2,)).reachable, "without the limit it is reached"


def test_a_longer_query_is_only_promised_where_it_helps() -> None:
    keys, query = np.array([[3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), np.array([5.0, 0.0])
    assert "longer query" not in explore.replace_key(keys, np.eye(3), query, 2, (2,), unit=True).why
    shorter = keys / 6
    answer, longer = (explore.replace_key(shorter, np.eye(3), scale * query, 2, (2,), unit=True) for scale in (1, 2))
    assert "a longer query lowers it" in answer.why.replace("another length or ", "")
    assert longer.error < answer.error


def test_the_explanation_of_a_reached_target_is_about_its_case() -> None:
    assert "equal to k0 and k1" in explore.replace_key(K, V, QUERY, 2, (0, 1, 2)).why
    assert "has all the weight" in explore.replace_key(K, V, QUERY, 2, (2,)).why
    assert "The query already gives v0 and v1 without v2" in explore.replace_key(K, V, QUERY, 2, (0, 1)).why


def test_in_one_dimension_the_better_of_the_two_unit_keys_is_taken() -> None:
    keys, values = np.array([[1.0], [2.0], [4.0]]), np.array([[1.0], [2.0], [3.0]])
    for chosen in ((0,), (1,), (0, 1)):
        answer = explore.replace_key(keys, values, np.array([0.5]), 0, chosen, unit=True)
        assert abs(answer.new_key[0]) == 1.0
        other = np.vstack([-answer.new_key, keys[1:]])
        assert answer.error <= np.abs(explore.attend(np.array([0.5]), other, values) - answer.targets[0]).max()


def test_one_key_alone_is_refused() -> None:
    with pytest.raises(UserError, match="only one key"):
        explore.replace_key(K[:1], V[:1], np.ones(3), 0, (0,))
