"""One head or two: how stable an average of two values is when one key varies in length.

The means μ_i are perpendicular and of length 1. Keys are drawn as k_i ~ N(μ_i, αI), except that

    k_a ~ N(μ_a, αI + ½ μ_a μ_aᵀ),    so   k_a ≈ z μ_a with z ~ N(1, ½).

One head with q = β(μ_a + μ_b) compares βz with β: its output jumps between v_a and v_b. Two heads with
q₁ = βμ_a and q₂ = βμ_b each see only their own key as long as z > 0, and their mean stays at ½(v_a + v_b).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array, softmax
from attnlab.explore.exploration import Exploration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise(Exploration):
    items: int
    alpha: float
    stretch: float
    beta: float
    samples: int
    seed: int
    one: Array = dataclasses.field(metadata={"bulky": True})
    """Outputs of one head, (samples, items): values are unit vectors, so these are the weights."""
    two: Array = dataclasses.field(metadata={"bulky": True})
    """Outputs of two heads, averaged."""
    forward: Array = dataclasses.field(metadata={"bulky": True})
    """Whether k_a points along its own query, k_a·q₁ > 0: the documents exclude the other draws."""

    derived = ("variance_one", "variance_two", "ratio", "ratio_forward", "forward_share")

    @property
    def variance_one(self) -> float:
        """Total variance of the output, the trace of its covariance."""
        return total_variance(self.one)

    @property
    def variance_two(self) -> float:
        return total_variance(self.two)

    @property
    def ratio(self) -> float:
        """Variance of the output of one head divided by that of two, over all draws."""
        return self.variance_one / self.variance_two

    @property
    def ratio_forward(self) -> float:
        """The same over the draws with k_a·q₁ > 0."""
        return total_variance(self.one[self.forward]) / total_variance(self.two[self.forward])

    @property
    def forward_share(self) -> float:
        return float(self.forward.mean())

    def summary(self) -> list[tuple[str, str]]:
        return [
            ("draws", f"{self.samples}, {self.forward_share:.1%} of them with k_a·q₁ > 0"),
            ("variance ratio, all draws", f"{self.ratio:.4g}"),
            ("variance ratio, k_a·q₁ > 0", f"{self.ratio_forward:.4g}"),
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for name, outputs in (("one head", self.one), ("two heads", self.two)):
            for kind, part in (("all draws", outputs), ("k_a·q₁ > 0", outputs[self.forward])):
                mean, deviation = part.mean(axis=0), part.std(axis=0)
                cells = (f"{mean[i]:.3f} ± {deviation[i]:.3f}" for i in (0, 1))
                rows.append([name, kind, *cells, f"{total_variance(part):.4g}"])
        return ["", "over", "share of v_a", "share of v_b", "total variance"], rows

    def figure(self) -> Figure:
        from attnlab.explore.figures.samples import noise

        return noise(self)


def noise(
    items: int = 4, alpha: float = 1e-6, stretch: float = 0.5, beta: float = 20.0, samples: int = 5000, seed: int = 0
) -> Noise:
    """Draw keys many times and attend with one head and with two; item 0 is a, item 1 is b."""
    if items < 2 or samples < 2:
        raise UserError(f"expected at least two items and two samples, got {items} and {samples}.")
    if alpha < 0 or stretch < 0 or not beta > 0:
        raise UserError("alpha and stretch cannot be negative, and the scale of the query must be positive.")
    draw = np.random.default_rng(seed)
    means = np.eye(items)
    keys = means + np.sqrt(alpha) * draw.standard_normal((samples, items, items))
    keys[:, 0] += np.sqrt(stretch) * draw.standard_normal((samples, 1)) * means[0]
    scores = beta * keys[:, :, :2]  # of βμ_a and βμ_b; their sum is the score of β(μ_a + μ_b)
    one = softmax(scores.sum(axis=2))
    two = (softmax(scores[:, :, 0]) + softmax(scores[:, :, 1])) / 2
    result = Noise(
        title="One head or two, when one key varies in length",
        why="",
        items=items,
        alpha=alpha,
        stretch=stretch,
        beta=beta,
        samples=samples,
        seed=seed,
        one=one,
        two=two,
        forward=scores[:, 0, 0] > 0,
    )
    return dataclasses.replace(result, why=_why(result))


def total_variance(outputs: Array) -> float:
    return float(outputs.var(axis=0).sum())


def _why(result: Noise) -> str:
    near = float((np.abs(result.one[:, 0] - 0.5) < 0.25).mean())
    return (
        "k_a is longer or shorter than k_b in every draw, and one head multiplies that difference by "
        f"{result.beta:g}, so one of the two wins: only {near:.0%} of its outputs are near the middle between v_a and "
        "v_b. Each of two heads compares its key with keys that score about 0, so the length of k_a "
        f"matters only when it turns negative; over all draws the variance of their output is {result.ratio:.3g} "
        "times smaller."
    )
