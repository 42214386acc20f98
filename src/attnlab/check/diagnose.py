"""Which catalogued mistake gives the person's answers?

A mistake is named if it gives the same numbers, or the same error of torch, on the inputs of the failed check and
nothing else on the other inputs of the function. In `self_attention` a cause whose own piece is right is excluded,
and if no single mistake explains all answers, two at once are tried. Without an explanation there is none: a wrong
cause costs more time than an unknown one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from attnlab.check.catalogue import CATALOGUE, USAGE, WHOLE, Function, Mistake, WholeMistake, pairs_of_mistakes
from attnlab.check.catalogue.masks import MASK_NAN, nan_follows_the_mask
from attnlab.check.compare_answers import as_tensors, same
from attnlab.check.judge.candidate import Outcome
from attnlab.check.judge.inside.errors import error_summary

Arguments = tuple[Any, ...]
TELLING_ERRORS = (RuntimeError, IndexError)  # of torch, about shapes; others come from everywhere


@dataclass(frozen=True)
class Probe:
    """One call of the person's function, and what it came to."""

    arguments: Arguments
    expected: Any
    outcome: Outcome

    @property
    def right(self) -> bool:
        return self.outcome.failure is None and same(self.expected, self.outcome.answer)


@dataclass
class Pieces:
    """What is known of the other functions of the file when `self_attention` fails."""

    called: set[str] = field(default_factory=set)
    """Those that `self_attention` calls, directly or not."""
    right: set[str] = field(default_factory=set)
    wrong: dict[str, set[str]] = field(default_factory=dict)
    """Those that fail, with the keys of their mistakes as far as they are known."""


def copies(arguments: Arguments) -> Arguments:
    return tuple(a.clone() if isinstance(a, Tensor) else a for a in arguments)


def find_mistake(name: str, probes: Sequence[Probe], others: Sequence[Probe]) -> Mistake | None:
    """The mistake in this piece that explains these calls, and contradicts none of the others."""
    if name == "apply_causal_mask" and all(_is_nan_by_mask(probe) for probe in probes):
        return MASK_NAN
    candidates = [m for m in CATALOGUE.get(name, ()) if all(explains(m.wrong, probe) for probe in probes)]
    whole = [m for m in candidates if all(allows(m.wrong, probe) for probe in others)]
    return _clearest(whole or candidates, probes)


def find_mistake_in_whole(probes: Sequence[Probe], others: Sequence[Probe], pieces: Pieces) -> Mistake | None:
    """The mistake in `self_attention`, or two at once, given what is known of its pieces."""
    possible = [mistake for whole in WHOLE if (mistake := _possible(whole, pieces))]
    possible.sort(key=lambda whole: not _is_known(whole, pieces))  # what a piece does wrong is wrong here too
    here = [whole for whole in possible if all(explains(whole.mistake.wrong, probe) for probe in probes)]
    everywhere = [whole for whole in here if all(allows(whole.mistake.wrong, probe) for probe in others)]
    if everywhere:
        return _clearest([whole.mistake for whole in everywhere], probes)
    if pair := _pair([*probes, *others], possible):
        alone = [whole for whole in pair if all(explains(whole.mistake.wrong, probe) for probe in probes)]
        return alone[0].mistake if alone else _both(*pair)
    if here:
        return _clearest([whole.mistake for whole in here], probes)
    here_pair = _pair(probes, possible)  # the other checks have a third mistake
    return _both(*here_pair) if here_pair else None


def explains(wrong: Function, probe: Probe) -> bool:
    """The same numbers, or the same error of torch."""
    answer, error = _attempt(wrong, probe.arguments)
    failure = probe.outcome.failure
    if failure is not None or error is not None:
        both = failure is not None and failure.doing == "call" and isinstance(error, TELLING_ERRORS)
        return both and failure is not None and error is not None and error_summary(error) == failure.summary
    return same(answer, probe.outcome.answer)


def allows(wrong: Function, probe: Probe) -> bool:
    """Not contradicted: an error or NaN may have another cause, numbers may not."""
    return _has_no_numbers(probe) or explains(wrong, probe)


def _has_no_numbers(probe: Probe) -> bool:
    tensors = as_tensors(probe.outcome.answer)
    return tensors is None or any(bool(tensor.isnan().any()) for tensor in tensors)


def _attempt(function: Function, arguments: Arguments) -> tuple[Any, Exception | None]:
    try:
        return function(*copies(arguments)), None
    except Exception as error:
        return None, error


def _clearest(mistakes: Sequence[Mistake], probes: Sequence[Probe]) -> Mistake | None:
    """Equal numbers everywhere are one mistake under two names; equal errors may be two mistakes, so none is named."""
    by_error = any(probe.outcome.failure for probe in probes)
    return None if not mistakes or (by_error and len({m.key for m in mistakes}) > 1) else mistakes[0]


def _possible(whole: WholeMistake, pieces: Pieces) -> WholeMistake | None:
    """This mistake as it can be made in this file: not in a piece that is called and right."""
    piece, key = whole.mistake.function, whole.mistake.key
    if piece == "self_attention" or piece not in pieces.called:
        return whole
    if piece in pieces.wrong:
        return whole if key in pieces.wrong[piece] else None
    if piece in pieces.right and key in USAGE:
        usage_key, advice = USAGE[key]
        return replace(whole, mistake=Mistake(usage_key, advice, "self_attention", whole.mistake.wrong))
    return None if piece in pieces.right else whole


def _is_known(whole: WholeMistake, pieces: Pieces) -> bool:
    return whole.mistake.key in pieces.wrong.get(whole.mistake.function, ())


def _pair(probes: Sequence[Probe], possible: Sequence[WholeMistake]) -> tuple[WholeMistake, WholeMistake] | None:
    """The first pair that explains all answers; each of the two must be needed for that."""
    wrong = [probe for probe in probes if not probe.right]
    if any(_has_no_numbers(probe) for probe in wrong):
        return None  # an error is explained by too many pairs, NaN by none
    hardest = max(wrong, key=lambda probe: probe.arguments[3:])  # several heads and the mask
    for first, second, together in pairs_of_mistakes(possible):
        if explains(together, hardest) and all(explains(together, probe) for probe in probes):
            return first, second
    return None


def _both(first: WholeMistake, second: WholeMistake) -> Mistake:
    return Mistake(
        f"{first.mistake.key}+{second.mistake.key}",
        f"two mistakes at once. First, {first.mistake.advice} Second, {second.mistake.advice}",
        "self_attention",
        first.mistake.wrong,
    )


def _is_nan_by_mask(probe: Probe) -> bool:
    answer = probe.outcome.answer
    return isinstance(answer, Tensor) and same_shape(probe, answer) and nan_follows_the_mask(probe.arguments[0], answer)


def same_shape(probe: Probe, answer: Tensor) -> bool:
    return isinstance(probe.expected, Tensor) and probe.expected.shape == answer.shape
