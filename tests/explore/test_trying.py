"""A query of your own: parity with torch, and the least error that any weights have."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab import explore
from attnlab.base.errors import UserError
from attnlab.explore.trying import least_error

SELECTION = explore.example("selection")
K, V = SELECTION.keys, SELECTION.values


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_weights_and_output_are_those_of_torch(count: int, width: int, parts: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    query, keys, values = (
        draw.standard_normal(width),
        draw.standard_normal((count, width)),
        draw.standard_normal((count, parts)),
    )
    found = explore.try_query(query, keys, values, target=values[0])
    q, k, v = (torch.tensor(part) for part in (query[None], keys, values))
    expected = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], scale=1.0)[0, 0]
    assert found.output == pytest.approx(expected.numpy(), abs=1e-12)
    assert found.weights == pytest.approx((k @ q[0]).softmax(0).numpy(), abs=1e-12)
    assert found.distance == pytest.approx(float((expected - v[0]).norm()), abs=1e-12)
    assert found.error == pytest.approx(float((expected - v[0]).abs().max()), abs=1e-12)


def test_no_weights_come_closer_than_the_least_error() -> None:
    draw = np.random.default_rng(0)
    for target in draw.normal(0, 1.5, (20, 3)):
        weights = np.vstack([draw.dirichlet(np.full(4, 0.3), 20_000), np.eye(4)])
        tried = np.abs(weights @ V - target).max(axis=1).min()
        assert least_error(V, target) <= tried + 1e-7
        assert least_error(V, target) == pytest.approx(tried, abs=0.03)


def test_a_target_outside_the_values_is_out_of_reach_of_every_query() -> None:
    outside = explore.try_query(np.ones(3), K, V, np.ones(3))
    assert outside.least_error == pytest.approx(0.8)
    assert "no query, come closer than an error of 0.8" in outside.why
    inside = explore.try_query(np.ones(3), K, V, V.mean(axis=0))
    assert inside.least_error == 0.0
    assert "some weights reach it" in inside.why


def test_without_a_target_there_is_no_distance() -> None:
    found = explore.try_query(np.array([1.0, 0.0, 2.0]), K, V)
    assert found.distance is None
    assert found.error is None
    assert not any("target" in name for name, _ in found.summary())
    assert "exp(0.54) = 1.72 times its weight" in found.why
    assert found.weights[0] / found.weights[3] == pytest.approx(np.exp(0.54))


def test_the_query_of_the_document_selects_the_first_value() -> None:
    found = explore.try_query(np.array([470_000.0, 650_000.0, 600_000.0]), K, V, V[0])
    assert found.distance == 0.0
    assert "The output is the target." in found.why


@pytest.mark.parametrize(
    ("query", "target", "message"),
    [
        (np.ones(2), None, "the query has 2 numbers, but the keys have 3"),
        (np.ones(3), np.ones(2), "the target has 2 numbers, but the values have 3"),
    ],
)
def test_wrong_lengths_are_refused(query: np.ndarray, target: np.ndarray | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        explore.try_query(query, K, V, target)
