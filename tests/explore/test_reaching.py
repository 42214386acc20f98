"""Which sets of keys can win: every verdict is checked by its query or by its proof, and by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab import explore
from attnlab.explore.attend import softmax


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(2, 5))
def test_every_verdict_is_proved(seed: int, width: int, count: int) -> None:
    keys = np.random.default_rng(seed).integers(-3, 4, (count, width)).astype(np.float64)
    for found in explore.reach(keys).sets:
        chosen = list(found.chosen)
        wanted = np.isin(np.arange(count), chosen) / len(chosen)
        if found.reachable:
            length = 0.0 if np.isinf(found.margin) else 40 / found.margin
            assert softmax(keys @ (length * found.query)) == pytest.approx(wanted, abs=1e-6)
        else:
            assert found.combination @ keys == pytest.approx(wanted @ keys, abs=1e-6)
            assert np.delete(found.combination, chosen).sum() > 1e-6


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_in_the_plane_the_selectable_keys_are_those_that_win_in_some_direction(seed: int) -> None:
    keys = np.random.default_rng(seed).integers(-9, 10, (6, 2)).astype(np.float64)
    # between two directions in which two keys tie, one key wins: trying the middle of each gap misses nothing
    differences = (keys[:, None] - keys[None]).reshape(-1, 2)
    ties = np.arctan2(differences[:, 0], -differences[:, 1])
    angles = np.sort(np.unique(np.r_[ties, ties + np.pi] % (2 * np.pi)))
    middles = (angles + np.roll(angles, -1) + 2 * np.pi * (np.arange(len(angles)) == len(angles) - 1)) / 2
    winners = set()
    for angle in middles:
        scores = keys @ [np.cos(angle), np.sin(angle)]
        best = np.flatnonzero(scores > scores.max() - 1e-9)
        if len(best) == 1:
            winners.add(int(best[0]))
    assert set(explore.reach(keys, size=1).selectable) == winners


def test_a_simplex_allows_every_set() -> None:
    found = explore.reach(explore.example("selection").keys)
    assert len(found.sets) == 15
    assert all(one.reachable for one in found.sets)
    assert "simplex" in found.why


def test_five_keys_in_three_dimensions_never_allow_every_set() -> None:
    """Radon: five points in three dimensions split into two sets whose hulls cross."""
    for seed in range(5):
        keys = np.random.default_rng(seed).standard_normal((5, 3))
        assert not all(one.reachable for one in explore.reach(keys).sets)


def test_the_square() -> None:
    found = explore.reach(explore.example("square").keys, size=2)
    allowed = {one.chosen for one in found.sets if one.reachable}
    assert allowed == {(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (0, 3)}
    middle = next(one for one in found.sets if one.chosen == (4,))
    assert middle.combination @ found.keys == pytest.approx([0.2, 0.1])
    assert middle.combination[4] == pytest.approx(0.0)


def test_one_set_can_be_given() -> None:
    found = explore.reach(explore.example("square").keys, chosen=(2, 0))
    assert [one.chosen for one in found.sets] == [(0, 2)]
    assert "0.5·k1 + 0.5·k3" in found.why


def test_many_keys_are_decided_in_pairs() -> None:
    found = explore.reach(np.random.default_rng(0).standard_normal((8, 2)))
    assert {len(one.chosen) for one in found.sets} == {1, 2}
