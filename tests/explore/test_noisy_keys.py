"""One head against two, compared with the limit of long queries."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm

from attnlab import explore

FORWARD = float(norm.cdf(sqrt(2)))  # P(z > 0) for z ~ N(1, ½)


def test_one_head_jumps_and_two_heads_stay() -> None:
    found = explore.noise(beta=2000.0, alpha=0.0, samples=20_000)
    # in the limit one head gives v_a or v_b with probability ½ each: total variance ½
    assert found.variance_one == pytest.approx(0.5, abs=0.01)
    # two heads move only when z < 0, from ½(v_a + v_b) by ½(v_a − mean of the others)
    assert found.variance_two == pytest.approx(FORWARD * (1 - FORWARD) * (1 + 1 / 3) / 4, rel=0.06)
    assert found.forward_share == pytest.approx(FORWARD, abs=0.01)


def test_two_heads_hold_the_average_when_the_key_points_forward() -> None:
    found = explore.noise()
    kept = found.two[found.forward]
    assert kept.mean(axis=0)[:2] == pytest.approx([0.5, 0.5], abs=0.02)
    assert found.ratio > 10
    assert found.ratio_forward > 100


def test_small_noise_alone_disturbs_neither() -> None:
    found = explore.noise(stretch=0.0, beta=20.0, alpha=1e-6)
    assert np.abs(found.one[:, :2] - 0.5).max() < 0.05
    assert np.abs(found.two[:, :2] - 0.5).max() < 0.05


def test_the_seed_decides_the_draws() -> None:
    assert explore.noise(seed=1, samples=50).ratio == explore.noise(seed=1, samples=50).ratio
    assert explore.noise(seed=1, samples=50).ratio != explore.noise(seed=2, samples=50).ratio


def test_samples_stay_out_of_the_plain_numbers() -> None:
    assert "one" not in explore.noise(samples=50).as_dict()
