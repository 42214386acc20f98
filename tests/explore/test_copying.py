"""The weight on one key against the length of the query."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab import explore
from attnlab.explore.copying import LEVELS, weight_along

SELECTION = explore.example("selection").keys


def test_the_rest_stays_below_its_bound() -> None:
    found = explore.copy(SELECTION, 0)
    bound = 3 * np.exp(-found.best_margin * found.lengths)
    assert (1 - found.best <= bound + 1e-12).all()
    assert (np.diff(found.best) >= -1e-15).all()


@pytest.mark.parametrize("index", range(4))
def test_the_widest_direction_needs_the_shorter_query_in_the_end(index: int) -> None:
    found = explore.copy(SELECTION, index)
    assert found.best_margin >= found.own_margin > 0
    assert found.needed[LEVELS[-1]] <= found.own_needed[LEVELS[-1]]


def test_the_needed_length_gives_the_level() -> None:
    known = explore.example("orthonormal").keys
    found = explore.copy(known, 0)
    for level in LEVELS:
        # along an orthonormal key itself: e^s / (e^s + 3) = level
        assert found.own_needed[level] == pytest.approx(np.log(3 * level / (1 - level)))
        again = weight_along(known, 0, known[0], np.array([found.own_needed[level]]))
        assert again[0] == pytest.approx(level)


def test_the_own_key_can_be_the_wrong_query() -> None:
    known = explore.example("unequal")
    found = explore.copy(known.keys, 0)
    assert found.own_margin < 0 < found.best_margin
    assert found.own_needed[0.9] is None
    assert explore.attend(1e6 * known.keys[0], known.keys, known.values) == pytest.approx(known.values[1])
    assert explore.select(known.keys, known.values, 0).error < 1e-12


def test_no_length_copies_a_key_inside_the_hull() -> None:
    found = explore.copy(explore.example("square").keys, 4)
    assert found.needed[0.5] is None
    assert "k4 = " in found.why
