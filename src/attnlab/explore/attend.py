"""Attention as an operation on one query, in numpy, in double precision.

    α = softmax(K q)        weights: how strongly each key matches the query
    c = Vᵀ α                output: the values, averaged by the weights

There is no 1/√d here: it only rescales q, and the explorations choose q freely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def softmax(scores: Array) -> Array:
    """exp(s_i) / Σ_j exp(s_j) along the last axis, shifted by the largest score so that nothing overflows."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def attend(query: Array, keys: Array, values: Array) -> Array:
    """softmax(q Kᵀ) V for one query (d,) or several (m, d)."""
    return np.asarray(softmax(query @ keys.T) @ values)


def largest_difference(output: Array, target: Array) -> float:
    """The error measure of the documents: the largest absolute difference of any component."""
    return float(np.abs(output - target).max())
