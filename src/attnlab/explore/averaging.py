"""Average by attention: all values, or some of them without the rest."""

from __future__ import annotations

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array
from attnlab.explore.exploration import QueryExploration
from attnlab.explore.matrices import check_index, check_pair, takes_numbers
from attnlab.explore.query import best_query
from attnlab.explore.reasons import listed


@takes_numbers
def average(keys: Array, values: Array) -> QueryExploration:
    """The mean of all values: q = 0 gives every key the same score, for any keys."""
    check_pair(keys, values)
    return _average(keys, values, tuple(range(len(keys))), None, "Average all values")


@takes_numbers
def average_some(
    keys: Array, values: Array, chosen: tuple[int, ...] = (0, 1), norm: float | None = None
) -> QueryExploration:
    """The mean of the chosen values.

    The scores of the chosen keys must be exactly equal (a difference δ shifts the weights by tanh(δ/2), and
    scaling the query up scales δ up with it), and those of the others lower by as much as possible.
    """
    check_pair(keys, values)
    if not chosen:
        raise UserError("no values to average: give at least one index, for example 0,1.")
    for index in chosen:
        check_index(index, len(keys), "value")
    chosen = tuple(sorted(set(chosen)))
    return _average(keys, values, chosen, norm, f"Average {listed(chosen, 'v')}")


def _average(keys: Array, values: Array, chosen: tuple[int, ...], norm: float | None, title: str) -> QueryExploration:
    best = best_query(keys, values, chosen, norm)
    return QueryExploration(
        title=title,
        why=best.why,
        keys=keys,
        values=values,
        queries=best.query[None],
        targets=values[list(chosen)].mean(axis=0)[None],
        wanted=(np.isin(np.arange(len(keys)), chosen) / len(chosen))[None],
        reachable=best.reachable,
    )
