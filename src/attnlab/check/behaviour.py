"""Does a function answer the same question always alike? If not: state that it keeps, or chance."""

from __future__ import annotations

from collections.abc import Callable

from attnlab.check.catalogue import Mistake
from attnlab.check.compare_answers import as_tensors
from attnlab.check.judge.candidate import Outcome

Call = Callable[[int], Outcome]
"""The same call again, with the random generators seeded by this number."""
Fresh = Callable[[], Outcome]
"""The same call in a new process, with the same seed as the first."""

STATE = Mistake(
    "keeps-state",
    "the same inputs give different answers, depending on earlier calls: keep nothing between calls (a global "
    "variable, a mask that is created once).",
    "",
    lambda: None,
)
RANDOM = Mistake(
    "random",
    "the same inputs give different answers by chance: leave out the dropout and anything else that is random.",
    "",
    lambda: None,
)


def unsteady(first: Outcome, again: Call, fresh: Fresh, seed: int) -> Mistake | None:
    """Why the answer is not always the same, or None if it is. `first` was called with `seed`."""
    if not equal(first, again(seed)):
        return RANDOM if not equal(fresh(), fresh()) else STATE
    return RANDOM if not equal(first, again(seed + 1)) else None


def keeps_state(first: Outcome, fresh: Fresh) -> bool:
    """Answered otherwise in a process in which nothing was called before."""
    return not equal(first, fresh())


def equal(one: Outcome, other: Outcome) -> bool:
    """Bit for bit; NaN included, since here only change matters."""
    left, right = as_tensors(one.answer), as_tensors(other.answer)
    if left is None or right is None or one.failure or other.failure:
        return one.answer == other.answer and one.failure == other.failure if left is None and right is None else False
    shapes = [t.shape for t in left] == [t.shape for t in right]
    return shapes and all(a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(left, right, strict=True))
