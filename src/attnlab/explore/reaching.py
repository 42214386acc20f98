"""Which values attention can select, and which it can average, for given keys and any query.

This is geometry (`convex_hull`): a set of values can be averaged, in the limit of long queries, exactly
when its keys are all the keys on one face of the hull. Keys in general position with n ≤ d + 1 are a simplex,
where every set is a face; with n ≥ d + 2 some set never is (Radon: d + 2 points split into two sets whose
hulls cross).
"""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from attnlab.base.errors import UserError
from attnlab.explore.attend import Array
from attnlab.explore.convex_hull import combination, smallest_face
from attnlab.explore.exploration import Exploration, vector
from attnlab.explore.matrices import check_index, takes_numbers
from attnlab.explore.reasons import listed, mixture, obstruction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# One linear programme per set, about two milliseconds each.
MOST_SETS = 5000


@dataclasses.dataclass(frozen=True)
class KeySet:
    """One set of keys, and whether a query can make them win together."""

    chosen: tuple[int, ...]
    reachable: bool
    margin: float
    """Score by which the chosen lead the rest, for a query of length 1; 0 if they cannot."""
    query: Array | None
    """The unit query with that margin."""
    combination: Array | None
    """Convex weights that give the chosen keys' mean with other keys: the proof that no such query exists."""
    why: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reach(Exploration):
    keys: Array
    sets: tuple[KeySet, ...]

    derived = ("selectable",)

    @property
    def selectable(self) -> list[int]:
        """The keys that some query selects."""
        return [key_set.chosen[0] for key_set in self.sets if len(key_set.chosen) == 1 and key_set.reachable]

    def summary(self) -> list[tuple[str, str]]:
        counts = []
        for size in sorted({len(key_set.chosen) for key_set in self.sets}):
            same = [key_set for key_set in self.sets if len(key_set.chosen) == size]
            label = "single keys" if size == 1 else f"sets of {size}"
            counts.append((label, f"{sum(key_set.reachable for key_set in same)} of {len(same)} reachable"))
        return counts

    def table(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for key_set in self.sets:
            if key_set.query is not None:
                best = f"q = S·{vector(key_set.query)}" if key_set.query.any() else "q = 0"
                rows.append([listed(key_set.chosen), "yes", f"{key_set.margin:.4g}", best])
            else:
                proof = "" if key_set.combination is None else f"same mean: {mixture(key_set.combination)}"
                rows.append([listed(key_set.chosen), "no", "", proof])
        return ["keys", "reachable", "margin", "best query, or why none"], rows

    def figure(self) -> Figure:
        from attnlab.explore.figures.hull import reach

        return reach(self)


@takes_numbers
def reach(keys: Array, size: int | None = None, chosen: tuple[int, ...] | None = None) -> Reach:
    """Decide every set of at most `size` keys, or one set. The default size is all keys up to 6, else pairs."""
    count = len(keys)
    if chosen is not None:
        for index in chosen:
            check_index(index, count, "key")
        candidates = [tuple(sorted(set(chosen)))]
    else:
        largest = min(size or (count if count <= 6 else 2), count)
        total = sum(math.comb(count, k) for k in range(1, largest + 1))
        if total > MOST_SETS:
            raise UserError(
                f"{count} keys have {total} sets of up to {largest}; more than {MOST_SETS} take too long: "
                "give a smaller size, or one set by its rows."
            )
        candidates = [rows for k in range(1, largest + 1) for rows in combinations(range(count), k)]
    sets = tuple(decide(keys, rows) for rows in candidates)
    return Reach(title="Keys that can be selected or averaged", why=_why(keys, sets), keys=keys, sets=sets)


def decide(keys: Array, chosen: tuple[int, ...]) -> KeySet:
    """Whether some query scores the chosen keys equally and every other key lower; the query or the proof."""
    if len(chosen) == len(keys):
        return KeySet(chosen, True, np.inf, np.zeros(keys.shape[1]), None, "q = 0 scores all keys equally.")
    face = smallest_face(keys, chosen)
    if face.members == chosen:
        why = f"{listed(chosen)}: a face of the hull, {face.margin:.4g} away from the hull of the rest."
        return KeySet(chosen, True, face.margin, face.normal, None, why)
    return KeySet(chosen, False, 0.0, None, combination(keys, chosen), obstruction(keys, chosen))


def _why(keys: Array, sets: tuple[KeySet, ...]) -> str:
    if len(sets) == 1:
        return sets[0].why
    failing = [key_set for key_set in sets if not key_set.reachable]
    dimension = int(np.linalg.matrix_rank(keys - keys.mean(axis=0)))
    if not failing:
        if dimension == len(keys) - 1:
            return (
                f"The {len(keys)} keys are the corners of a simplex (no one is an affine combination of the "
                "others), so every set of them is a face and can be averaged."
            )
        return "Each of these sets is a face of the hull of the keys, so some query makes exactly its keys win."
    return (
        f"{len(sets) - len(failing)} of {len(sets)} sets are faces of the hull of the keys, and only those "
        f"can be selected or averaged. The first that is not: {failing[0].why}"
    )
