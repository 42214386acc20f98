"""Whether two classifiers differ on a test set, and by how much.

McNemar's test (1947) looks at the examples that only one of two classifiers gets right: if both are equally good, each
is equally likely to be that one. A bootstrap (Efron 1979) over examples and seeds gives an interval of the difference
of accuracies. Holm's correction (1979) bounds the chance of any false alarm among many pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Right = NDArray[np.bool_]
"""Which examples were right: (N,) for one run, (S, N) for S seeds."""
DRAWS = 2000


@dataclass(frozen=True)
class Discordant:
    """How many examples only the first got right, and only the second."""

    first: int
    second: int

    @classmethod
    def of(cls, first: Right, second: Right) -> Discordant:
        return cls(int((first & ~second).sum()), int((second & ~first).sum()))

    @property
    def p(self) -> float:
        """McNemar, exact and two-sided: twice the chance of this few or fewer heads in first + second fair throws."""
        from scipy.special import bdtr

        count = self.first + self.second
        return min(1.0, 2.0 * float(bdtr(min(self.first, self.second), count, 0.5))) if count else 1.0


def bootstrap(first: Right, second: Right, draws: int = DRAWS, seed: int = 0) -> tuple[float, float]:
    """A 95% interval of accuracy(first) - accuracy(second), both (S, N): seeds and examples are resampled together.

    A seed or an example that is drawn is drawn for both.
    """
    difference = first.astype(np.float32) - second.astype(np.float32)  # (S, N)
    seeds, examples = difference.shape
    generator = np.random.default_rng(seed)
    means = np.empty(draws)
    for n in range(draws):
        rows = difference[generator.integers(seeds, size=seeds)].mean(0) if seeds > 1 else difference[0]
        means[n] = rows[generator.integers(examples, size=examples)].mean()
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def holm(values: Sequence[float]) -> list[float]:
    """p-values of several tests, adjusted: the k-th smallest of m times m - k + 1, never falling, at most 1."""
    adjusted, highest = [1.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda n: values[n])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted
