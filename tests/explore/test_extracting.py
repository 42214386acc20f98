"""The matrix that recovers a term of a sum, on random subspaces of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab import explore
from attnlab.base.errors import UserError


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int, int]:
    dimension = draw(st.integers(2, 40))
    m = draw(st.integers(1, dimension - 1))
    return dimension, m, draw(st.integers(1, dimension - m))


@settings(max_examples=60, deadline=None)
@given(sizes(), st.booleans(), st.integers(0, 2**32 - 1))
def test_perpendicular_subspaces_of_any_size(sizes: tuple[int, int, int], of_mean: bool, seed: int) -> None:
    a, b = explore.random_subspaces(*sizes, seed=seed)
    found = explore.extract(a, b, of_mean, seed=seed)
    assert found.perpendicular
    assert found.error < 1e-11
    assert found.matrix == pytest.approx((2 if of_mean else 1) * a.T @ a), "M needs nothing but the basis of A"
    assert found.matrix @ b.T == pytest.approx(np.zeros(b.T.shape), abs=1e-11), "what lies in B vanishes"


@settings(max_examples=40, deadline=None)
@given(sizes(), st.integers(0, 2**32 - 1))
def test_subspaces_that_are_not_perpendicular(sizes: tuple[int, int, int], seed: int) -> None:
    dimension, m, p = sizes
    basis = np.random.default_rng(seed).standard_normal((m + p, dimension))
    if np.linalg.cond(basis) > 1e6:
        return
    found = explore.extract(basis[:m], basis[m:], seed=seed)
    assert found.error < 1e-7


def test_the_projection_alone_fails_when_the_subspaces_lean() -> None:
    a, b = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])
    found = explore.extract(a, b)
    naive = found.mixed @ (a.T @ a).T
    assert np.abs(naive - found.wanted).max() > 0.1
    assert found.error < 1e-12


def test_a_shared_direction_is_refused() -> None:
    with pytest.raises(UserError, match="share a direction"):
        explore.extract(np.eye(3)[:2], np.array([[1.0, 1.0, 0.0]]))
