"""K, Q and V by hand, against the closed form of the errors."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab import explore
from attnlab.explore.constructing import self_attention

BETAS = (0.5, 1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize("dimension", [4, 9])
def test_the_errors_follow_their_closed_form(dimension: int) -> None:
    found = explore.construct(BETAS, dimension, seed=3)
    beta = np.array(BETAS)
    stray = 1 / (np.exp(beta**2) + 2)  # the weight of each other key
    assert found.c2_to_ub == pytest.approx(np.sqrt(2) * beta * stray, abs=1e-12)
    assert found.c1_to_ub_uc == pytest.approx(np.sqrt(5) * beta * stray, abs=1e-12)


def test_plain_attention_stays_with_its_own_input() -> None:
    found = explore.construct((6.0,))
    assert found.parts["c₂ plain"] == pytest.approx([1, 0, 0, 0], abs=1e-6)
    assert found.parts["c₂ with u_d added to x₂"] == pytest.approx([1, 0, 0, 1], abs=1e-6)
    assert found.parts["c₂ with u_c added to x₂"] == pytest.approx([1, 0, 1, 0], abs=1e-6)
    assert found.plain_to_ub[0] > 6.0


@pytest.mark.parametrize("share", [-2.0, 0.25, 0.5, 1.0, 3.0])
def test_no_multiple_of_u_d_helps_plain_attention(share: float) -> None:
    a, b, c, d = 8.0 * np.eye(4)
    inputs = np.stack([d + b, a + share * d, c + b])
    output = self_attention(inputs, np.eye(4), np.eye(4), np.eye(4))[1]
    assert output == pytest.approx(inputs[1], abs=1e-6)


def test_the_matrices_map_the_inputs_as_documented() -> None:
    found = explore.construct((3.0,), dimension=6, seed=1)
    a, b, c, d = 3.0 * found.basis
    assert found.value_matrix @ (d + b) == pytest.approx(b)
    assert found.value_matrix @ a == pytest.approx(np.zeros(6), abs=1e-12)
    assert found.value_matrix @ (c + b) == pytest.approx(b - c)
    assert found.query_matrix @ a == pytest.approx(d)
    assert found.query_matrix @ (d + b) == pytest.approx(c)
