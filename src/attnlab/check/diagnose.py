"""Which catalogued mistake gives the student's answer?

Several may agree on one input: `K.T` and `K.transpose(1, 2)` raise the same error once there
are heads, but only one of them is right without. So the candidates are compared with the student's function on
its other inputs too, and the one that agrees on most inputs is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attnlab.check.catalogue import CATALOGUE, Function, Mistake, pairs_of_mistakes
from attnlab.check.checks import CHECKS, CheckInputs
from attnlab.check.compare_answers import as_tensors, same
from attnlab.check.time_limit import TimeLimitExceeded

Arguments = tuple[Any, ...]


@dataclass
class Outcome:
    answer: Any = None
    error: BaseException | None = None


def attempt(function: Function, arguments: Arguments) -> Outcome:
    """Call it and record the answer or the error, `sys.exit` included."""
    try:
        return Outcome(function(*arguments))
    except (TimeLimitExceeded, KeyboardInterrupt):
        raise
    except BaseException as error:
        return Outcome(error=error)


def copies(arguments: Arguments) -> Arguments:
    return tuple(a.clone() if isinstance(a, Tensor) else a for a in arguments)


def find_mistake(name: str, function: Function, arguments: Arguments, outcome: Outcome) -> Mistake | None:
    """The mistake that agrees with the student's function on these arguments and on most of the other inputs."""
    candidates = _agreeing(CATALOGUE.get(name, ()), arguments, outcome)
    if not candidates and name == "self_attention" and as_tensors(outcome.answer):
        candidates = _agreeing(pairs_of_mistakes(), arguments, outcome)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    inputs = [check.arguments(CheckInputs()) for check in CHECKS if check.function == name]
    outcomes = [(others, attempt(function, copies(others))) for others in inputs]
    agreements = [sum(_agrees(mistake, *pair) for pair in outcomes) for mistake in candidates]
    best = [mistake for mistake, count in zip(candidates, agreements, strict=True) if count == max(agreements)]
    # Equal numbers everywhere are one mistake under two names; equal error messages may be two mistakes.
    unclear = outcome.error is not None and len({mistake.key for mistake in best}) > 1
    return None if unclear else best[0]


def _agreeing(mistakes: Iterable[Mistake], arguments: Arguments, outcome: Outcome) -> list[Mistake]:
    return [mistake for mistake in mistakes if _agrees(mistake, arguments, outcome)]


def _agrees(mistake: Mistake, arguments: Arguments, outcome: Outcome) -> bool:
    """The same numbers, or the same error from torch."""
    wrong = attempt(mistake.wrong, copies(arguments))
    if wrong.error is not None and outcome.error is not None:
        return isinstance(wrong.error, RuntimeError | IndexError) and repr(wrong.error) == repr(outcome.error)
    return wrong.error is None and outcome.error is None and same(wrong.answer, outcome.answer)
