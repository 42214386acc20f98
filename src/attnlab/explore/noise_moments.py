"""Mean and variance of the outputs of one head and two, by integration and from draws.

As α → 0 the keys are their means except k_a = z μ_a, and every share of the output is a function of z alone:

    one head:   softmax(βz, β, 0, …)
    two heads:  ½ softmax(βz, 0, 0, …) + ½ softmax(0, β, 0, …)        z ~ N(1, stretch)

Gauss-Legendre panels integrate them over z. The shares change within about 1/β of z = 0 and z = 1, so the panels
are narrow there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.explore.attend import Array, softmax

# sigmoid(40) is 1 in double precision, and 40 standard deviations hold all of a normal distribution.
FAR = 40
PANELS, NODES = 400, 20
# A mean of thousands of shares near 1 is exact to about 1e-13, so a smaller variance is rounding.
ROUNDING = 1e-26
# ln 3: the difference of two scores at which their weights are as 1 to 3, the border of "near the middle".
BORDER = math.log(3.0)


@dataclass(frozen=True)
class Estimate:
    value: float
    error: float = 0.0
    """Standard error; 0 for an exact value."""

    def __str__(self) -> str:
        """0.498 ± 0.007: as many digits as the error allows; an exact value has four."""
        if not math.isfinite(self.value):
            return "undefined"
        if not self.error > 0:
            return f"{self.value:.4g}"
        if max(abs(self.value), self.error) >= 1e5 or self.error < 1e-5:
            return f"{self.value:.3g} ± {self.error:.1g}"
        place = -math.floor(math.log10(self.error))
        places = max(0, place + (self.error * 10**place < 2))  # 18 and 7, not 20 and 7
        return f"{self.value:.{places}f} ± {self.error:.{places}f}"


@dataclass(frozen=True)
class Moments:
    """The output of one design."""

    share_a: Estimate
    """Mean share of v_a."""
    deviation_a: Estimate
    """Standard deviation of that share."""
    share_b: Estimate
    variance: Estimate
    """Total variance of the output, the trace of its covariance; values are unit vectors."""


@dataclass(frozen=True)
class Comparison:
    """One head and two over the same draws."""

    one: Moments
    two: Moments
    ratio: Estimate
    """Variance of one head divided by that of two; not a number if two heads do not vary."""
    middle: Estimate
    """Share of the outputs of one head between a quarter and three quarters of the way from v_b to v_a."""


def forward_probability(stretch: float) -> float:
    """P(z > 0) for z ~ N(1, stretch)."""
    return 0.5 * (1.0 + math.erf(1.0 / math.sqrt(2.0 * stretch))) if stretch > 0 else 1.0


def exact(items: int, stretch: float, beta: float, forward: bool) -> Comparison:
    """The moments as α → 0, over all z or over z > 0."""
    z, mass = lengths(stretch, beta, forward)
    # All other keys score 0 and share alike: together they weigh as one key with the score ln(n − 2).
    others = math.log(items - 2) if items > 2 else -math.inf
    zero = np.zeros_like(z)
    one = softmax(np.stack([beta * z, zero + beta, zero + others], axis=1))
    first = softmax(np.stack([beta * z, zero, zero + others], axis=1))
    second = softmax(np.array([0.0, beta, others]))
    of_one, of_two = (_exact_moments(shares, mass, items) for shares in (one, (first + second) / 2))
    near = mass[np.abs(beta * (z - 1.0)) < BORDER].sum()
    return Comparison(of_one, of_two, _divided(of_one.variance, of_two.variance), Estimate(float(near)))


def lengths(stretch: float, beta: float, forward: bool) -> tuple[Array, Array]:
    """Nodes z and their probabilities, for z ~ N(1, stretch), with z > 0 if `forward`."""
    if stretch == 0:
        return np.ones(1), np.ones(1)
    deviation = math.sqrt(stretch)
    low, high = 1.0 - FAR * deviation, 1.0 + FAR * deviation
    narrow = np.arange(-FAR, FAR + 1) / beta
    borders = 1.0 + np.array([-BORDER, BORDER]) / beta
    edges = np.r_[np.linspace(low, high, PANELS + 1), narrow, 1.0 + narrow, borders]
    edges = np.unique(np.clip(edges, max(low, 0.0) if forward else low, high))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges) / 2
    z = (edges[:-1] + half)[:, None] + half[:, None] * nodes
    mass = half[:, None] * weights * np.exp(-(((z - 1.0) / deviation) ** 2) / 2)
    return z.ravel(), mass.ravel() / mass.sum()


def simulated(one: Array, two: Array) -> Comparison:
    """The moments of drawn outputs (draws, items), each with its standard error."""
    squares = [((outputs - outputs.mean(axis=0)) ** 2).sum(axis=1) for outputs in (one, two)]
    ratio = _divided(*(_mean(square) for square in squares))
    if math.isfinite(ratio.value):
        # The first-order change of V₁/V₂ by each draw: the two variances come from the same draws.
        influence = (squares[0] - ratio.value * squares[1]) / squares[1].mean()
        ratio = Estimate(ratio.value, _mean(influence).error)
    near = (one[:, 0] < 3 * one[:, 1]) & (one[:, 1] < 3 * one[:, 0])
    return Comparison(_moments(one), _moments(two), ratio, _mean(near.astype(np.float64)))


def _exact_moments(shares: Array, mass: Array, items: int) -> Moments:
    """From the shares of v_a, v_b and all others together, at every node."""
    mean = mass @ shares
    a, b, others = mass @ (shares - mean) ** 2
    variance = a + b + others / max(items - 2, 1)  # each of the others has an equal part
    return Moments(*(Estimate(float(x)) for x in (mean[0], math.sqrt(a), mean[1], variance)))


def _moments(outputs: Array) -> Moments:
    centred = (outputs - outputs.mean(axis=0)) ** 2
    square = _mean(centred[:, 0])
    deviation = math.sqrt(square.value)
    return Moments(
        _mean(outputs[:, 0]),
        Estimate(deviation, square.error / (2 * deviation) if deviation else 0.0),
        _mean(outputs[:, 1]),
        _mean(centred.sum(axis=1)),
    )


def _mean(numbers: Array) -> Estimate:
    return Estimate(float(numbers.mean()), float(numbers.std() / math.sqrt(len(numbers))))


def _divided(one: Estimate, two: Estimate) -> Estimate:
    return Estimate(one.value / two.value if two.value > ROUNDING else math.nan)
