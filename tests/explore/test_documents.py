"""Every number of the documents' attention exercises, and the 0.05 they allow."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab import explore
from attnlab.explore.attend import largest_difference

SELECTION = explore.example("selection")
K, V = SELECTION.keys, SELECTION.values
TOLERANCE = 0.05
FINE = 1e-12  # tolerance where the exact result is possible


def error(query: np.ndarray, target: np.ndarray, keys: np.ndarray = K) -> float:
    return largest_difference(explore.attend(query, keys, V), target)


@pytest.mark.parametrize("index", range(4))
def test_each_value_is_selected(index: int) -> None:
    assert explore.select(K, V, index).error < FINE


def test_identity_returns_every_value() -> None:
    answer = explore.identity(K, V)
    assert answer.error < FINE
    assert np.allclose(answer.weights, np.eye(4), atol=FINE)


def test_a_million_times_the_own_key_selects_too() -> None:
    query = 1_000_000 * K[0]
    assert query == pytest.approx([470_000, 650_000, 600_000])
    assert error(query, V[0]) < FINE


def test_a_zero_query_averages_all_exactly_and_the_mean_key_does_not() -> None:
    assert explore.average(K, V).error < 1e-15
    assert K.mean(axis=0) == pytest.approx([0.3775, -0.04, -0.13])
    assert error(K.mean(axis=0), V.mean(axis=0)) == pytest.approx(0.0201, abs=5e-5)


def test_the_first_two_are_averaged() -> None:
    answer = explore.average_some(K, V, (0, 1))
    assert answer.error < FINE
    assert answer.weights[0] == pytest.approx([0.5, 0.5, 0, 0], abs=FINE)


def test_ten_times_the_mean_of_two_keys_has_the_error_that_was_reported() -> None:
    target = V[:2].mean(axis=0)
    assert f"{error(10 * K[:2].mean(axis=0), target):.4f}" == "0.0029"
    assert f"{error(10 * K[:2].sum(axis=0), target):.4f}" == "0.0058", "the formula with the sum has another error"


def test_a_larger_scale_ruins_the_mean_of_two_keys_but_not_ours() -> None:
    target = V[:2].mean(axis=0)
    assert error(1_000_000 * K[:2].mean(axis=0), target) > 0.2
    assert error(1_000 * explore.average_some(K, V, (0, 1)).queries[0], target) < FINE


def test_replacing_the_third_key_averages_three() -> None:
    query = explore.average_some(K, V, (0, 1)).queries[0]
    answer = explore.replace_key(K, V, query, index=2, chosen=(0, 1, 2))
    assert answer.error < FINE
    assert np.array_equal(np.delete(answer.keys, 2, axis=0), np.delete(K, 2, axis=0)), "only one key may change"
    assert np.array_equal(answer.queries[0], query), "the query must not change"


def test_a_unit_key_returns_the_third_value() -> None:
    query = explore.average_some(K, V, (0, 1)).queries[0]
    answer = explore.replace_key(K, V, query, index=2, chosen=(2,), unit=True)
    assert answer.error < TOLERANCE
    assert np.linalg.norm(answer.new_key) == pytest.approx(1.0)


def test_the_documents_own_query_is_too_short_for_the_unit_key() -> None:
    query = 10 * K[:2].mean(axis=0)
    answer = explore.replace_key(K, V, query, index=2, chosen=(2,), unit=True)
    assert answer.new_key == pytest.approx(query / np.linalg.norm(query)), "nothing beats a key along the query"
    assert answer.error > TOLERANCE


def test_argmax_returns_the_first_value() -> None:
    known = explore.example("argmax")
    found = explore.argmax(known.keys, known.values, known.query)
    assert found.scores.tolist() == [3, 1, 1, -3]
    assert found.output.tolist() == [3, 2, -4]


def test_argmax_of_1_3_2() -> None:
    found = explore.argmax(np.eye(3), np.eye(3), np.array([1.0, 3.0, 2.0]))
    assert found.output.tolist() == [0, 1, 0]


def test_orthonormal_keys_average_two_with_a_large_multiple_of_their_sum() -> None:
    known = explore.example("orthonormal")
    target = known.values[:2].mean(axis=0)
    for scale, allowed in ((1.0, 1.0), (10.0, 1e-4), (40.0, 1e-15)):
        output = explore.attend(scale * known.keys[:2].sum(axis=0), known.keys, known.values)
        assert largest_difference(output, target) < allowed
    ours = explore.average_some(known.keys, known.values, (0, 1))
    direction = ours.queries[0] / np.linalg.norm(ours.queries[0])
    assert ours.error < FINE
    widest = known.keys[:2].sum(axis=0) - known.keys[2:].sum(axis=0)
    assert direction == pytest.approx(widest / np.linalg.norm(widest)), "pushing the others below 0 is wider still"
