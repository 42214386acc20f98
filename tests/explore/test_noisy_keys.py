"""One head against two: the exact moments by another integration, by many draws, and in the limit of long queries."""

from __future__ import annotations

from itertools import pairwise
from math import inf, isnan, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import softmax
from scipy.stats import norm

from attnlab import explore
from attnlab.base.errors import UserError
from attnlab.explore.noise_moments import Comparison, Estimate, Moments, exact

FORWARD = float(norm.cdf(sqrt(2)))  # P(z > 0) for z ~ N(1, ½)


def outputs(z: float, items: int, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """One head and two as α → 0, for one length of k_a."""
    keys = np.eye(items)
    keys[0] *= z
    a, b = beta * np.eye(items)[:2]
    return softmax(keys @ (a + b)), (softmax(keys @ a) + softmax(keys @ b)) / 2


def integrated(items: int, stretch: float, beta: float, low: float) -> list[tuple[float, float]]:
    """Mean share of v_a and total variance of both designs, by scipy's adaptive quadrature."""
    z = norm(1, sqrt(stretch))

    def expected(function: object, heads: int) -> float:
        def weighted(x: float) -> float:
            return z.pdf(x) * function(outputs(x, items, beta)[heads])  # type: ignore[operator]

        edges = np.unique(np.clip([-4, -0.5, 0, 0.05, 0.2, 0.5, 1, 1.5, 2, 6], max(low, -4), 6))
        parts = [quad(weighted, *edge, epsabs=1e-13, limit=200)[0] for edge in pairwise(edges)]
        return sum(parts) / float(z.sf(low))

    found = []
    for heads in (0, 1):
        means = [expected(lambda share, i=i: share[i], heads) for i in range(items)]
        squares = expected(lambda share: (share**2).sum(), heads)
        found.append((means[0], squares - sum(mean**2 for mean in means)))
    return found


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize(("items", "stretch", "beta"), [(4, 0.5, 20.0), (2, 0.3, 5.0), (6, 0.5, 1.0)])
def test_the_exact_moments_are_those_of_another_integration(
    items: int, stretch: float, beta: float, forward: bool
) -> None:
    found = exact(items, stretch, beta, forward)
    expected = integrated(items, stretch, beta, 0.0 if forward else -inf)
    for design, (share, variance) in zip((found.one, found.two), expected, strict=True):
        assert design.share_a.value == pytest.approx(share, rel=1e-8)
        assert design.variance.value == pytest.approx(variance, rel=1e-7)
    assert found.ratio.value == pytest.approx(expected[0][1] / expected[1][1], rel=1e-7)


def test_the_ratios_of_the_default_setting() -> None:
    found = explore.noise(samples=100)
    assert found.exact.ratio.value == pytest.approx(18.42, abs=0.005)
    assert found.exact_forward.ratio.value == pytest.approx(174.5, abs=0.05)
    assert found.exact_forward_share == pytest.approx(FORWARD)


def estimates(found: Comparison) -> dict[str, Estimate]:
    named = {"ratio": found.ratio, "middle": found.middle}
    for name, design in (("one", found.one), ("two", found.two)):
        named |= {f"{name}.{field}": getattr(design, field) for field in Moments.__dataclass_fields__}
    return named


def test_many_draws_agree_with_the_exact_values_within_their_standard_errors() -> None:
    found = explore.noise(samples=200_000, alpha=1e-9, seed=3)
    for expected, drawn in ((found.exact, found.simulated), (found.exact_forward, found.simulated_forward)):
        for name, estimate in estimates(drawn).items():
            assert estimate.error > 0, name
            assert estimate.value == pytest.approx(estimates(expected)[name].value, abs=4 * estimate.error), name


def test_the_standard_error_is_the_spread_over_seeds() -> None:
    found = [explore.noise(samples=1000, seed=seed).simulated for seed in range(60)]
    for name in ("ratio", "middle", "two.variance", "one.deviation_a"):
        values = [estimates(each)[name].value for each in found]
        claimed = np.mean([estimates(each)[name].error for each in found])
        assert np.std(values, ddof=1) == pytest.approx(claimed, rel=0.35), name


def test_the_limit_of_long_queries() -> None:
    found = explore.noise(beta=1e6, alpha=0.0, samples=100)
    # one head gives v_a or v_b with probability ½ each: total variance ½
    assert found.exact.one.variance.value == pytest.approx(0.5, abs=1e-5)
    # two heads move only when z < 0, from ½(v_a + v_b) by ½(v_a − mean of the others)
    assert found.exact.two.variance.value == pytest.approx(FORWARD * (1 - FORWARD) * (1 + 1 / 3) / 4, rel=1e-5)
    assert found.exact_forward.two.variance.value == pytest.approx(0.0, abs=1e-5)


def test_two_heads_hold_the_average_when_the_key_points_forward() -> None:
    found = explore.noise()
    kept = found.two[found.forward]
    assert kept.mean(axis=0)[:2] == pytest.approx([0.5, 0.5], abs=0.02)
    assert "only 6.2% of its outputs are near the middle" in found.why
    assert "18.4 times smaller over all draws and 174 times smaller over those with" in found.why


def test_without_stretch_both_designs_average_and_the_explanation_says_so() -> None:
    found = explore.noise(stretch=0.0)
    assert np.abs(found.one[:, :2] - 0.5).max() < 0.05
    assert np.abs(found.two[:, :2] - 0.5).max() < 0.05
    assert found.exact.one.variance.value == found.exact.two.variance.value == 0.0
    assert isnan(found.exact.ratio.value)
    assert found.as_dict()["exact"]["ratio"]["value"] is None
    assert "Without stretch" in found.why
    assert "Both designs give v_a and v_b about equal shares" in found.why
    assert "wins:" not in found.why


def test_where_nothing_varies_the_ratio_is_undefined_and_not_that_of_rounding_errors() -> None:
    found = explore.noise(stretch=0.0, alpha=0.0)
    assert isnan(found.simulated.ratio.value) and isnan(found.simulated_forward.ratio.value)
    assert dict(found.summary())["variance ratio, all draws"].endswith("undefined in the draws")
    assert found.simulated.two.variance.value < 1e-26 < explore.noise(stretch=0.0).simulated.two.variance.value


def test_a_large_alpha_makes_one_head_jump_without_any_stretch() -> None:
    found = explore.noise(stretch=0.0, alpha=0.1)
    assert found.simulated.one.deviation_a.value > 0.4
    assert "α = 0.1 varies all keys" in found.why
    assert "Without stretch" not in found.why


def test_a_query_too_short_to_separate_the_keys_is_named() -> None:
    assert "β = 0.5 is small: even without noise the other keys keep 38%" in explore.noise(beta=0.5).why


def test_the_seed_decides_the_draws_and_not_the_exact_values() -> None:
    first, again, second = (explore.noise(seed=seed, samples=50) for seed in (1, 1, 2))
    assert first.simulated == again.simulated != second.simulated
    assert first.exact == second.exact


def test_samples_stay_out_of_the_plain_numbers() -> None:
    assert "one" not in explore.noise(samples=50).as_dict()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta": inf}, "beta scales the queries"),
        ({"stretch": float("nan")}, "stretch is a variance"),
        ({"alpha": -1.0}, "alpha is a variance"),
        ({"items": 1}, "at least 2 items"),
        ({"samples": 2}, "30 samples"),
        ({"items": 10_000, "samples": 10_000}, "too many"),
        ({"seed": -1}, "the seed must be 0 or"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        explore.noise(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (Estimate(174.46), "174.5"),
        (Estimate(190.6, 18.31), "191 ± 18"),
        (Estimate(0.49815, 0.00669), "0.498 ± 0.007"),
        (Estimate(1.53e-20, 2e-22), "1.53e-20 ± 2e-22"),
        (Estimate(float("nan")), "undefined"),
    ],
)
def test_an_estimate_shows_the_digits_that_its_error_allows(estimate: Estimate, shown: str) -> None:
    assert str(estimate) == shown
