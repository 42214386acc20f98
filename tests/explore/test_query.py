"""The best query, when it is limited in length and when the wanted weights are out of reach."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from attnlab import explore
from attnlab.base.errors import UserError
from attnlab.explore.attend import softmax
from attnlab.explore.query import best_query
from attnlab.explore.query_search import likeliest_query

SELECTION = explore.example("selection")
SQUARE = explore.example("square")


@pytest.mark.parametrize("chosen", [(0,), (1,), (0, 1), (0, 2), (1, 2, 3)])
@pytest.mark.parametrize("norm", [1.0, 3.0])
def test_no_sampled_query_of_the_same_length_does_better(chosen: tuple[int, ...], norm: float) -> None:
    keys, values = SELECTION.keys, SELECTION.values
    query = best_query(keys, values, chosen, norm).query
    target = values[list(chosen)].mean(axis=0)
    draw = np.random.default_rng(0)
    tries = draw.standard_normal((20_000, 3))
    tries *= norm * draw.random((20_000, 1)) ** 0.2 / np.linalg.norm(tries, axis=1, keepdims=True)
    best = np.abs(explore.attend(tries, keys, values) - target).max(axis=1).min()
    assert np.linalg.norm(query) <= norm * (1 + 1e-12)
    assert np.abs(explore.attend(query, keys, values) - target).max() <= best + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_out_of_reach_no_sampled_query_does_better(seed: int) -> None:
    answer = explore.select(SQUARE.keys, SQUARE.values, 4)
    tries = np.random.default_rng(seed).standard_normal((5_000, 2)) * 10.0**seed / 100
    best = np.abs(explore.attend(tries, SQUARE.keys, SQUARE.values) - SQUARE.values[4]).max(axis=1).min()
    assert not answer.reachable
    assert 0.5 < answer.error <= best + 1e-9
    assert "k4 = " in answer.why


@pytest.mark.parametrize("seed", range(12))
def test_for_any_keys_no_sampled_query_does_better(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count, width, size = draw.integers(2, 10), draw.integers(1, 5), 10.0 ** draw.integers(-6, 7)
    keys, values = size * draw.integers(-2, 3, (count, width)), draw.standard_normal((count, 3))
    chosen = tuple(sorted(draw.choice(count, draw.integers(1, count), replace=False).tolist()))
    answer = explore.average_some(keys, values, chosen)
    tries = draw.standard_normal((3_000, width)) / size * 10.0 ** draw.uniform(-2, 2, (3_000, 1))
    best = np.abs(explore.attend(tries, keys, values) - answer.targets).max(axis=1).min()
    assert answer.error <= best + 1e-6
    assert not answer.reachable or answer.error < 1e-9


def test_the_likeliest_weights_keep_the_mean_of_the_keys() -> None:
    keys = SQUARE.keys
    wanted = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    weights = softmax(keys @ likeliest_query(keys, wanted))
    assert weights @ keys == pytest.approx(wanted @ keys, abs=1e-8)


def test_a_key_on_an_edge_shares_it() -> None:
    keys = np.array([[0, 0], [1, 1], [2, 2], [0, 3]], dtype=np.float64)
    answer = explore.select(keys, np.eye(4), 1)
    assert not answer.reachable
    assert answer.weights[0] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-6)


def test_equal_keys_cannot_be_distinguished() -> None:
    answer = explore.select(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.eye(3), 0)
    assert not answer.reachable
    assert "k0 = k1" in answer.why


def test_an_output_that_other_weights_give_is_found_and_explained() -> None:
    values = SQUARE.values[:, :2].copy()
    values[4] = (values[0] + values[1]) / 2
    answer = explore.select(SQUARE.keys, values, 4)
    assert answer.error < 1e-9
    assert "other weights" in answer.why


def test_one_key_takes_all_the_weight() -> None:
    assert explore.select(np.array([[5.0]]), np.array([[7.0]])).error == 0.0


def test_longer_queries_bring_the_error_down_without_limit() -> None:
    errors = [explore.select(SELECTION.keys, SELECTION.values, 0, norm).error for norm in (1, 2, 4, 8, 16)]
    assert all(later < earlier for earlier, later in pairwise(errors))
    # at most the n − 1 other values, each exp(−margin · length) away
    assert errors[-1] < 3 * np.exp(-1.063 * 16) * np.ptp(SELECTION.values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, v: explore.select(k, v[:3]), "K has 4 rows and V has 3"),
        (lambda k, v: explore.select(k, v, 4), "out of range"),
        (lambda k, v: explore.average_some(k, v, ()), "no values to average"),
        (lambda k, v: explore.average_some(k, v, (0, -1)), "out of range"),
        (lambda k, v: explore.replace_key(k, v, np.zeros(3)), "the query is zero"),
        (lambda k, v: explore.replace_key(k, v, np.ones(2)), "the query has 2 numbers"),
        (lambda k, v: explore.argmax(k, v, np.ones(4)), "the query has 4 numbers"),
        (lambda k, v: explore.copy(k, 7), "out of range"),
        (lambda k, v: explore.construct(dimension=3), "at least 4"),
        (lambda k, v: explore.random_subspaces(3, 2, 2), "at most 3"),
        (lambda k, v: explore.extract(np.eye(2), np.eye(3)), "make them equal"),
        (lambda k, v: explore.extract(np.ones((2, 3)), np.eye(3)[:1]), "not independent"),
        (lambda k, v: explore.noise(items=1), "at least 2 items"),
        (lambda k, v: explore.reach(np.eye(30), size=6), "take too long"),
    ],
)
def test_bad_input_is_one_sentence(call: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        call(SELECTION.keys, SELECTION.values)  # type: ignore[operator]
    assert "\n" not in str(caught.value)
