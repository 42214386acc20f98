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
    soft = gradients(KNOWN.keys, KNOWN.values, KNOWN.query, hard=False)
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


def test_a_tie_takes_the_first_and_is_reported() -> None:
    found = explore.argmax(np.eye(2), np.eye(2), np.array([1.0, 1.0]))
    assert (found.winner, found.ties) == (0, (1,))
    assert "k1" in found.why
