"""Argmax: the same output as an infinitely sharp softmax, and no gradient for queries and keys."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab import explore
from attnlab.explore.hard_attention import gradients

KNOWN = explore.example("argmax")


def test_queries_and_keys_get_no_gradient_and_values_do() -> None:
    found = explore.argmax(KNOWN.keys, KNOWN.values, KNOWN.query)
    assert found.hard_gradients["q"] == 0.0
    assert found.hard_gradients["K"] == 0.0
    assert found.hard_gradients["V"] > 1.0
    assert min(found.soft_gradients.values()) > 1.0


def test_the_softmax_gradient_is_the_finite_difference() -> None:
    step = 1e-6

    def loss(query: np.ndarray) -> float:
        return float((explore.attend(query, KNOWN.keys, KNOWN.values) ** 2).sum())

    slopes = [(loss(KNOWN.query + step * e) - loss(KNOWN.query - step * e)) / (2 * step) for e in np.eye(3)]
    soft = gradients(KNOWN.keys, KNOWN.values, KNOWN.query)
    assert soft["q"] == pytest.approx(np.linalg.norm(slopes), rel=1e-6)


def test_a_small_change_of_the_query_changes_nothing() -> None:
    for move in np.random.default_rng(0).uniform(-0.1, 0.1, (50, 3)):
        found = explore.argmax(KNOWN.keys, KNOWN.values, KNOWN.query + move)
        assert found.output.tolist() == [3, 2, -4]


def test_a_sharper_softmax_approaches_argmax_and_loses_its_gradient() -> None:
    found = explore.argmax(KNOWN.keys, KNOWN.values, KNOWN.query)
    sharp = explore.attend(30 * KNOWN.query, KNOWN.keys, KNOWN.values)
    assert sharp == pytest.approx(found.output)
    assert found.fading[-1] < 1e-9


def test_at_a_tie_the_first_key_wins_and_the_weights_have_no_derivative() -> None:
    keys, values, query = np.eye(2), np.array([[1.0], [5.0]]), np.array([1.0, 1.0])
    found = explore.argmax(keys, values, query)
    assert (found.winner, found.ties) == (0, (1,))
    assert found.output.tolist() == [1.0]
    assert found.hard_gradients["q"] is None
    assert found.hard_gradients["K"] is None
    assert found.hard_gradients["V"] == 2.0, "the value that won still learns"
    for size in (1e-3, 1e-9):  # however small the change, either key wins
        moved = [explore.argmax(keys, values, query + size * np.array(way)).winner for way in ([1, 0], [0, 1])]
        assert moved == [0, 1]
        keys_moved = keys + size * np.array([[0, 0], [0, 1]])
        assert explore.argmax(keys_moved, values, query).winner == 1
    assert "k0 and k1 tie" in found.why
    assert "no derivative" in found.why
    assert "changes no weight" not in found.why


def test_softmax_shares_a_tie_equally_however_sharp_it_is() -> None:
    keys, values, query = np.eye(3), np.diag([2.0, 4.0, 8.0]), np.array([1.0, 1.0, 0.0])
    found = explore.argmax(keys, values, query)
    assert explore.attend(50 * query, keys, values) == pytest.approx([1.0, 2.0, 0.0])
    assert "(1, 2, 0)" in found.why
    assert found.fading[-1] > found.fading[0], "at a tie the softmax gradient does not fade"


def test_a_tie_by_rounding_is_a_tie() -> None:
    keys = np.array([[0.3, 0.0], [0.1, 0.2]])  # 0.1 + 0.2 is 0.30000000000000004
    assert explore.argmax(keys, np.eye(2), np.array([1.0, 1.0])).ties == (1,)
    assert explore.argmax(keys, np.eye(2), np.array([1.0, 1.0])).winner == 0


def test_a_part_that_cannot_break_the_tie_keeps_its_gradient_of_zero() -> None:
    equal = explore.argmax(np.array([[1.0, 0.0], [1.0, 0.0]]), np.eye(2), np.array([1.0, 1.0]))
    assert equal.hard_gradients["q"] == 0.0, "equal keys tie for every query"
    assert equal.hard_gradients["K"] is None
    zero = explore.argmax(np.eye(2), np.eye(2), np.zeros(2))
    assert zero.hard_gradients["q"] is None
    assert zero.hard_gradients["K"] == 0.0, "a query of zero scores any keys 0"
