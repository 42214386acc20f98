"""Built-in keys and values: the matrices of the documents, and two that show cases they leave out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.base.errors import UserError, unknown
from attnlab.explore.attend import Array


@dataclass(frozen=True)
class ExploreExample:
    source: str
    keys: Array
    values: Array
    query: Array | None = None


def _example(source: str, keys: object, values: object, query: object = None) -> ExploreExample:
    array = None if query is None else np.array(query, dtype=np.float64)
    return ExploreExample(source, np.array(keys, dtype=np.float64), np.array(values, dtype=np.float64), array)


EXAMPLES = {
    "selection": _example(
        "Attention and Transformers, sections 1.2 to 1.4: four keys in three dimensions",
        [[0.47, 0.65, 0.60], [0.64, 0.50, -0.59], [-0.03, -0.48, -0.88], [0.43, -0.83, 0.35]],
        [[-0.07, -0.88, 0.47], [0.37, -0.93, -0.07], [-0.25, -0.75, 0.61], [0.94, 0.20, 0.28]],
    ),
    "argmax": _example(
        "Training Transformer Language Models, section 2.1: four keys, four values and a query",
        [[0, 1, 2], [1, 1, 2], [-1, 1, -2], [0, -1, -2]],
        [[3, 2, -4], [3, -2, 4], [3, 2, 0], [3, 2, 4]],
        [-2, 1, 1],
    ),
    "orthonormal": _example(
        "the assumption of the average-of-two questions: perpendicular keys of length 1",
        np.eye(4),
        [[1, 0], [0, 1], [-1, 0], [0, -1]],
    ),
    "square": _example(
        "four corners and a key in the middle, which no query selects",
        [[1, 1], [-1, 1], [-1, -1], [1, -1], [0.2, 0.1]],
        [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1]],
    ),
    "unequal": _example(
        "a long key and a short one: the short key itself is the wrong query for it",
        [[1, 0], [2, 1], [-1, 1]],
        [[1, 0], [0, 1], [-1, -1]],
    ),
}


def example(name: str) -> ExploreExample:
    """A built-in example by name."""
    if name not in EXAMPLES:
        raise UserError(unknown("example", name, EXAMPLES))
    return EXAMPLES[name]
