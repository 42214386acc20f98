"""One head or two: how stable an average of two values is when one key varies in length.

The means μ_i are perpendicular and of length 1. Keys are drawn as k_i ~ N(μ_i, αI), except that

    k_a ~ N(μ_a, αI + ½ μ_a μ_aᵀ),    so   k_a ≈ z μ_a with z ~ N(1, ½).

One head with q = β(μ_a + μ_b) compares βz with β: its output jumps between v_a and v_b. Two heads with
q₁ = βμ_a and q₂ = βμ_b each see only their own key as long as z > 0, and their mean stays at ½(v_a + v_b).
Every number is computed twice: exactly as α → 0 (`noise_moments`), and from draws with the given α.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, softmax
from attnlab.explore.exploration import Exploration
from attnlab.explore.matrices import LARGEST, check_seed
from attnlab.explore.noise_moments import Comparison, Estimate, exact, forward_probability, simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWEST_SAMPLES = 30  # fewer have no meaningful standard error
MOST_KEYS = 20_000_000  # of all draws together: about 1 GB


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise(Exploration):
    items: int
    alpha: float
    stretch: float
    beta: float
    samples: int
    seed: int
    exact: Comparison
    """By integration over z, as α → 0."""
    exact_forward: Comparison
    """The same over z > 0: the documents exclude the other draws."""
    simulated: Comparison
    """From the draws, with standard errors."""
    simulated_forward: Comparison
    """From the draws with k_a·q₁ > 0."""
    one: Array = dataclasses.field(metadata={"bulky": True})
    """Outputs of one head, (samples, items): values are unit vectors, so these are the weights."""
    two: Array = dataclasses.field(metadata={"bulky": True})
    """Outputs of two heads, averaged."""
    forward: NDArray[np.bool_] = dataclasses.field(metadata={"bulky": True})
    """Whether k_a points along its own query, k_a·q₁ > 0."""

    derived = ("forward_share", "exact_forward_share")

    @property
    def forward_share(self) -> float:
        """Share of the draws with k_a·q₁ > 0."""
        return float(self.forward.mean())

    @property
    def exact_forward_share(self) -> float:
        """The probability of z > 0."""
        return forward_probability(self.stretch)

    def summary(self) -> list[tuple[str, str]]:
        share = f"{self.exact_forward_share:.1%} exactly, {self.forward_share:.1%} in the draws"
        return [
            ("draws with k_a·q₁ > 0", share),
            ("one head near the middle", _beside(self.exact.middle, self.simulated.middle)),
            ("variance ratio, all draws", _beside(self.exact.ratio, self.simulated.ratio)),
            ("variance ratio, k_a·q₁ > 0", _beside(self.exact_forward.ratio, self.simulated_forward.ratio)),
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for heads, name in (("one head", "one"), ("two heads", "two")):
            for over, integrated, drawn in (
                ("all draws", self.exact, self.simulated),
                ("k_a·q₁ > 0", self.exact_forward, self.simulated_forward),
            ):
                for measure, shown in (
                    ("share_a", "share of v_a"),
                    ("deviation_a", "its deviation"),
                    ("variance", "total variance"),
                ):
                    sides = [str(getattr(getattr(side, name), measure)) for side in (integrated, drawn)]
                    rows.append([heads, over, shown, *sides])
        return ["", "over", "", "exact, α → 0", f"{self.samples} draws ± standard error"], rows

    def figure(self) -> Figure:
        from attnlab.explore.figures.samples import noise

        return noise(self)


def noise(
    items: int = 4, alpha: float = 1e-6, stretch: float = 0.5, beta: float = 20.0, samples: int = 5000, seed: int = 0
) -> Noise:
    """Attend with one head and with two, exactly and for many draws of the keys; item 0 is a, item 1 is b."""
    _check(items, alpha, stretch, beta, samples, seed)
    draw = np.random.default_rng(seed)
    # Only the parts of a key along μ_a and μ_b enter a score: (samples, items, 2).
    keys = np.eye(items, 2) + math.sqrt(alpha) * draw.standard_normal((samples, items, 2))
    keys[:, 0, 0] += math.sqrt(stretch) * draw.standard_normal(samples)
    scores = beta * keys  # of βμ_a and βμ_b; their sum is the score of β(μ_a + μ_b)
    one = softmax(scores.sum(axis=2))
    two = (softmax(scores[:, :, 0]) + softmax(scores[:, :, 1])) / 2
    forward = scores[:, 0, 0] > 0
    result = Noise(
        title="One head or two, when one key varies in length",
        why="",
        items=items,
        alpha=alpha,
        stretch=stretch,
        beta=beta,
        samples=samples,
        seed=seed,
        exact=exact(items, stretch, beta, forward=False),
        exact_forward=exact(items, stretch, beta, forward=True),
        simulated=simulated(one, two),
        simulated_forward=simulated(one[forward], two[forward]),
        one=one,
        two=two,
        forward=forward,
    )
    return dataclasses.replace(result, why=_why(result))


def _check(items: int, alpha: float, stretch: float, beta: float, samples: int, seed: int) -> None:
    if items < 2 or samples < FEWEST_SAMPLES:
        raise UserError(f"expected at least 2 items and {FEWEST_SAMPLES} samples, got {items} and {samples}.")
    if items * samples > MOST_KEYS:
        raise UserError(f"{samples} draws of {items} keys are too many: together at most {MOST_KEYS:,} keys fit.")
    for name, number in (("alpha", alpha), ("stretch", stretch)):
        if not 0 <= number < LARGEST:
            raise UserError(f"{name} is a variance: expected 0 or more, below {LARGEST:g}, got {number:g}.")
    if not 0 < beta < LARGEST:
        raise UserError(f"beta scales the queries: expected a positive number below {LARGEST:g}, got {beta:g}.")
    check_seed(seed)


def _why(result: Noise) -> str:
    """Whether one head jumps, what makes it jump, and what two heads change."""
    shaken = result.beta * math.sqrt(2 * result.alpha)
    is_limit = shaken <= 0.1  # α is small enough for the exact values to describe the draws
    sentences = [_settled(result) if result.simulated.middle.value >= 0.5 else _jumping(result, is_limit)]
    kept = (result.items - 2) / (2 * math.exp(min(result.beta, 700.0)) + result.items - 2)
    if kept > 0.05:
        sentences.append(
            f"β = {result.beta:g} is small: even without noise the other keys keep {kept:.0%} of the weight of one "
            "head, so neither output is near ½(v_a + v_b)."
        )
    if not is_limit:
        sentences.append(
            f"α = {result.alpha:g} adds noise of size β√(2α) = {shaken:.2g} to the scores of one head, which the "
            "exact values, for α → 0, leave out."
        )
    return " ".join(sentences)


def _settled(result: Noise) -> str:
    cause = "Without stretch k_a varies as little as the other keys" if result.stretch == 0 else "k_a varies little"
    one, two = result.simulated.one.deviation_a.value, result.simulated.two.deviation_a.value
    return (
        f"{cause}: in one head its score and that of k_b differ by about {_gap(result):.2g}, too little for one of "
        "them to win. Both designs give v_a and v_b about equal shares in every draw: the share of v_a deviates by "
        f"{one:.2g} with one head and by {two:.2g} with two. A second head pays only if one key varies more in length."
    )


def _jumping(result: Noise, is_limit: bool) -> str:
    over_all, forward = result.simulated, result.simulated_forward
    if is_limit:
        over_all, forward = result.exact, result.exact_forward
    middle = f"only {over_all.middle.value:.1%} of its outputs are near the middle between v_a and v_b"
    smaller = (
        f"the variance of their output is {_divided_by(over_all.ratio)} over all draws and "
        f"{_divided_by(forward.ratio)} over those with k_a·q₁ > 0."
    )
    if result.stretch > 4 * result.alpha:
        return (
            "k_a is longer or shorter than k_b in every draw, and one head multiplies that difference by "
            f"{result.beta:g}, so one of the two wins: {middle}. Each of two heads compares its key with keys that "
            f"score about 0, so the length of k_a matters only when it is near 0 or negative: {smaller}"
        )
    return (
        f"α = {result.alpha:g} varies all keys: in one head the scores of k_a and k_b differ by about "
        f"{_gap(result):.2g}, so one of the two wins: {middle}. Each of two heads compares its key with keys that "
        f"score 0 give or take {result.beta * math.sqrt(result.alpha):.2g}: {smaller}"
    )


def _gap(result: Noise) -> float:
    """Standard deviation of the difference between the scores of k_a and k_b in one head."""
    return result.beta * math.sqrt(result.stretch + 4 * result.alpha)


def _divided_by(ratio: Estimate) -> str:
    return f"{ratio.value:.3g} times smaller" if math.isfinite(ratio.value) else "0"


def _beside(exact: Estimate, simulated: Estimate) -> str:
    known = f"{exact} exactly" if math.isfinite(exact.value) else "undefined as α → 0, where two heads do not vary"
    return f"{known}, {simulated} in the draws"
