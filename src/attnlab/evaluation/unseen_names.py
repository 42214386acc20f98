"""Names that occur nowhere in training: the model cannot have learned what it answers for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.evaluation.answers import AnsweredQuestion, AskedModel
from attnlab.evaluation.sources import Sources
from attnlab.models.asking import ModelAnswer

FROM_QUESTIONS = "named in the questions"
INVENTED = "invented: not in the world"
RECOMBINED = "invented: first and last names recombined"
TRIES = 50  # draws per requested name before the names are considered exhausted


@dataclass(frozen=True)
class UnseenName:
    """A name that occurs nowhere in training, and the model's answer."""

    name: str
    answer: ModelAnswer
    name_probability: float | None
    kind: str


def ask_unseen_names(asked: AskedModel, count: int, sources: Sources, seed: int) -> list[UnseenName]:
    """Ask about invented names: names the world does not have, or new combinations of first and last names.

    A vocabulary of words reads every word it does not have as UNKNOWN, so all names made of such words look alike.
    They are easy to distinguish from known names, so recombined names are added as the harder test.
    """
    names: dict[str, str] = {}
    if sources.world is not None:
        names = dict.fromkeys(sources.world.unseen_names(count), INVENTED)
    question = sources.template.question_about
    if sources.pretraining is not None and not (names and all(asked.has_words(question(name)) for name in names)):
        names |= dict.fromkeys(recombine_names(list(sources.trained_names), count, sources.mentions, seed), RECOMBINED)
    if not names:
        return []
    answers, probabilities = asked.answers([question(name) for name in names]), asked.name_probabilities(list(names))
    return [
        UnseenName(name, answer, probability, kind)
        for (name, kind), answer, probability in zip(names.items(), answers, probabilities, strict=True)
    ]


def unseen_in_questions(answered: Sequence[AnsweredQuestion], sources: Sources) -> list[UnseenName]:
    """The questions about people who occur neither in pretraining nor in fine-tuning."""
    if sources.pretraining is None:
        return []
    return [
        UnseenName(each.name, each.answer, each.name_probability, FROM_QUESTIONS)
        for each in answered
        if each.name is not None and not sources.mentions(each.name)
    ]


def recombine_names(names: Sequence[str], count: int, exists: Callable[[str], bool], seed: int) -> list[str]:
    """At most `count` full names, each with the first name of one person and the last name of another.

    Both halves are familiar and only their combination is new, so unusual letters do not reveal it. Fewer are
    returned when the given names have fewer new combinations.
    """
    parts = [name.rsplit(" ", 1) for name in dict.fromkeys(names) if " " in name]
    firsts, lasts = (sorted({part[side] for part in parts}) for side in (0, 1))
    if not parts:
        return []
    random = np.random.default_rng(seed)
    recombined: dict[str, None] = {}
    for _ in range(TRIES * count):
        if len(recombined) == count:
            break
        name = f"{firsts[random.integers(len(firsts))]} {lasts[random.integers(len(lasts))]}"
        if name not in recombined and not exists(name):
            recombined[name] = None
    return list(recombined)
