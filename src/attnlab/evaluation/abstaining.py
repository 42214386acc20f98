"""When to answer "I don't know": when the answer is not confident, or when the person's name was never read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from attnlab.base.errors import UserError
from attnlab.evaluation.name_probability import NameProbabilities
from attnlab.evaluation.sources import Sources
from attnlab.evaluation.unseen_names import recombine_names
from attnlab.models.asking import DONT_KNOW, ModelAnswer
from attnlab.stats.calibration import best_threshold

CHOSEN_ON = 500  # names of each kind: enough for a threshold, a few seconds on one core


@dataclass(frozen=True)
class NameThreshold:
    """A name below `value` counts as never read."""

    value: float
    known: int
    """Names of the training questions that the pretraining text mentions, on which it was chosen."""
    unseen: int
    """New combinations of their first and last names, likewise."""
    sensitivity: float
    """The share of these known names at or above it."""
    specificity: float
    """The share of these unseen names below it."""

    def knows(self, probability: float | None) -> bool:
        """A name without a probability gets the benefit of the doubt."""
        return probability is None or probability >= self.value

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def choose_name_threshold(
    probabilities: NameProbabilities, sources: Sources, seed: int, without: Sequence[str] = ()
) -> NameThreshold | None:
    """The threshold that best separates the names of the training questions from new combinations of their parts.

    Nothing but training data is used; `without` are names that must not be among the combinations because the
    threshold is evaluated on them. None if there are no names to choose on.
    """
    text = sources.pretraining
    if text is None:
        return None
    read = [name for name in sources.trained_names if text.lines_naming(name)]
    step = max(1, len(read) // CHOSEN_ON)
    left_out = frozenset(without)
    new = recombine_names(read, CHOSEN_ON, lambda name: name in left_out or sources.mentions(name), seed + 1)
    known = [value for value in probabilities(read[::step][:CHOSEN_ON]) if value is not None]
    unseen = [value for value in probabilities(new) if value is not None]
    if not known or not unseen:
        return None
    value = best_threshold(known + unseen, [True] * len(known) + [False] * len(unseen))
    kept_known, kept_unseen = (sum(each >= value for each in part) / len(part) for part in (known, unseen))
    return NameThreshold(value, len(known), len(unseen), sensitivity=kept_known, specificity=1 - kept_unseen)


def required_threshold(sources: Sources, threshold: NameThreshold | None) -> NameThreshold:
    """The threshold, or one sentence on why this model cannot show which names it has read."""
    if not sources.names_learned:
        raise UserError(
            "--abstain needs a model that has learned the names it read, and this one was not trained to predict them: "
            "pretrain with --titles (or without --hidden-only), or give --abstain-below."
        )
    if threshold is None:
        raise UserError(
            "--abstain chooses its threshold on the names of the training questions, and none of them was found in "
            "the pretraining text: give --corpus, or --abstain-below."
        )
    return threshold


@dataclass(frozen=True)
class Abstaining:
    """What is withheld; without any threshold, nothing."""

    below: float | None = None
    """Answers with a lower confidence."""
    names: NameThreshold | None = None
    """Answers about people whose names are less probable."""

    def withholds(self, answer: ModelAnswer, name_probability: float | None) -> bool:
        unsure = self.below is not None and answer.confidence < self.below
        return unsure or (self.names is not None and not self.names.knows(name_probability))

    def text(self, answer: ModelAnswer, name_probability: float | None) -> str:
        """The answer, or "I don't know"."""
        return DONT_KNOW if self.withholds(answer, name_probability) else answer.text
