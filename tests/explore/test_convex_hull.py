"""The geometry against brute force: sampled directions, hull membership and duality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from attnlab.explore.convex_hull import combination, smallest_face, widest_direction

few = settings(max_examples=40, deadline=None)


@st.composite
def key_sets(draw: st.DrawFn) -> np.ndarray:
    """A few integer keys, so that ties, repeats and keys inside the hull are common."""
    width, count = draw(st.integers(1, 3)), draw(st.integers(2, 7))
    numbers = draw(st.lists(st.integers(-3, 3), min_size=width * count, max_size=width * count))
    return np.array(numbers, dtype=np.float64).reshape(count, width)


def in_hull(point: np.ndarray, others: np.ndarray) -> bool:
    found = linprog(
        np.zeros(len(others)),
        A_eq=np.vstack([others.T, np.ones(len(others))]),
        b_eq=np.r_[point, 1.0],
        bounds=(0, None),
    )
    return found.status == 0


@few
@given(key_sets())
def test_a_key_is_a_face_of_its_own_exactly_when_it_is_outside_the_hull_of_the_others(keys: np.ndarray) -> None:
    for index in range(len(keys)):
        alone = smallest_face(keys, (index,)).members == (index,)
        assert alone == (not in_hull(keys[index], np.delete(keys, index, axis=0)))


@few
@given(key_sets(), st.integers(0, 2**32 - 1))
def test_the_winners_of_any_direction_are_a_face(keys: np.ndarray, seed: int) -> None:
    directions = np.random.default_rng(seed).integers(-2, 3, (20, keys.shape[1]))
    for direction in directions:
        scores = keys @ direction
        winners = tuple(int(i) for i in np.flatnonzero(scores == scores.max()))
        assert smallest_face(keys, winners).members == winners


@few
@given(key_sets(), st.data())
def test_a_face_comes_with_a_direction_that_separates_it(keys: np.ndarray, data: st.DataObject) -> None:
    chosen = tuple(sorted(data.draw(st.sets(st.integers(0, len(keys) - 1), min_size=1))))
    face = smallest_face(keys, chosen)
    assert set(chosen) <= set(face.members)
    if len(face.members) == len(keys):
        return
    scores = keys @ face.normal
    members = list(face.members)
    assert np.linalg.norm(face.normal) == pytest.approx(1.0)
    assert np.ptp(scores[members]) < 1e-8
    assert np.delete(scores, members).max() == pytest.approx(scores[members].mean() - face.margin)
    assert face.margin > 1e-6


@few
@given(key_sets(), st.data())
def test_what_is_not_a_face_comes_with_a_proof(keys: np.ndarray, data: st.DataObject) -> None:
    chosen = tuple(sorted(data.draw(st.sets(st.integers(0, len(keys) - 1), min_size=1))))
    weights = combination(keys, chosen)
    assert weights.min() >= -1e-9
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ keys == pytest.approx(keys[list(chosen)].mean(axis=0), abs=1e-6)
    elsewhere = np.delete(weights, list(chosen)).sum()
    assert (elsewhere > 1e-6) == (smallest_face(keys, chosen).members != chosen)


@few
@given(st.integers(0, 2**32 - 1))
def test_no_direction_has_a_wider_margin(seed: int) -> None:
    draw = np.random.default_rng(seed)
    keys = draw.standard_normal((5, 4))
    direction, margin = widest_direction(keys, (0,))
    tries = draw.standard_normal((500, 4))
    tries = np.r_[tries, direction + 0.05 * tries]
    tries /= np.linalg.norm(tries, axis=1, keepdims=True)
    gaps = ((keys[0] - keys[1:]) @ tries.T).min(axis=0)
    assert gaps.max() <= margin + 1e-9


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_size_of_the_keys_does_not_matter(size: float) -> None:
    keys = size * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [0.2, 0.1]])
    assert smallest_face(keys, (0,)).members == (0,)
    assert smallest_face(keys, (4,)).members == (0, 1, 2, 3, 4)
    assert smallest_face(keys, (0, 1)).margin == pytest.approx(0.9 * size)
