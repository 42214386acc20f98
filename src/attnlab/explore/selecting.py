"""Select by attention: a query that returns one value, and a query matrix that returns every value."""

from __future__ import annotations

import numpy as np

from attnlab.explore.attend import Array
from attnlab.explore.exploration import QueryExploration
from attnlab.explore.matrices import check_index, check_pair, takes_numbers
from attnlab.explore.query import best_query
from attnlab.explore.reasons import listed


@takes_numbers
def select(keys: Array, values: Array, index: int = 0, norm: float | None = None) -> QueryExploration:
    """A query whose output is the value `index`.

    The error is at most (n − 1) exp(−γ‖q‖) times the spread of the values, where γ is the distance of the
    key to the hull of the others; the query points from the nearest point of that hull to the key.
    """
    check_pair(keys, values)
    check_index(index, len(keys), "value")
    best = best_query(keys, values, (index,), norm)
    return QueryExploration(
        title=f"Select v{index}",
        why=best.why,
        keys=keys,
        values=values,
        queries=best.query[None],
        targets=values[[index]],
        wanted=np.eye(len(keys))[[index]],
        reachable=best.reachable,
    )


@takes_numbers
def identity(keys: Array, values: Array, norm: float | None = None) -> QueryExploration:
    """A query matrix whose outputs are the values themselves: one selection per row."""
    check_pair(keys, values)
    rows = [best_query(keys, values, (index,), norm) for index in range(len(keys))]
    failing = [index for index, row in enumerate(rows) if not row.reachable]
    if failing:
        why = f"{listed(failing)} cannot be selected. " + " ".join(f"q{i}: {rows[i].why}" for i in failing)
    elif len(keys) == 1:
        why = "There is one value, and every query returns it."
    else:
        narrowest = min(range(len(keys)), key=lambda index: rows[index].margin)
        why = (
            "Every key is a corner of the hull of the keys, so each row selects its own value. The smallest margin "
            f"is that of k{narrowest}, {rows[narrowest].margin:.3g} away from the hull of the others."
        )
        if norm is not None:
            why += f" With ‖q‖ ≤ {norm:g} the outputs are as close as that length allows."
    return QueryExploration(
        title="Identity: every query returns its own value",
        why=why,
        keys=keys,
        values=values,
        queries=np.stack([row.query for row in rows]),
        targets=values,
        wanted=np.eye(len(keys)),
        reachable=not failing,
    )
