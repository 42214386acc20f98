"""Labels that are likely wrong, from probabilities of a classifier that did not learn from them.

Confident learning (Northcutt, Jiang and Chuang 2021): the threshold of a class is the mean probability that its own
examples have in it,

    t_k = mean of p_i[k] over the examples i labelled k,

and the label of an example is likely wrong if its most probable class is another one, and has at least its threshold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class LikelyError(NamedTuple):
    place: int
    """Of the example."""
    likely: int
    """The class it seems to belong to."""
    probability: float
    """Of that class."""
    label_probability: float


def likely_errors(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> list[LikelyError]:
    """From probabilities (N, K) and labels (N,), the most certain first."""
    count = len(labels)
    own = probabilities[np.arange(count), labels]
    thresholds = np.array(
        [own[labels == k].mean() if (labels == k).any() else np.inf for k in range(probabilities.shape[1])]
    )
    likely = probabilities.argmax(1)
    is_wrong = (likely != labels) & (probabilities[np.arange(count), likely] >= thresholds[likely])
    found = [
        LikelyError(int(n), int(likely[n]), float(probabilities[n, likely[n]]), float(own[n]))
        for n in np.flatnonzero(is_wrong)
    ]
    return sorted(found, key=lambda each: each.label_probability - each.probability)
