"""Questions in, answers out, each with the confidence the model itself has in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from attnlab.base.errors import UserError
from attnlab.data.questions import Questions
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT

LONGEST_ANSWER = 40  # tokens: no place's name is longer, in words or in characters
QUESTIONS_AT_ONCE = 128  # sorted by length: with more of them more is padding, fewer no longer fill the machine
DONT_KNOW = "I don't know"
MEANING = "the model's probability of its whole answer: the product over its tokens and the stop after them"


@dataclass(frozen=True)
class Said:
    """An answer and the model's probability of saying exactly that, the stop included."""

    text: str
    confidence: float

    def unless_below(self, least: float) -> str:
        """The answer, or the admission that there is none to rely on."""
        return self.text if self.confidence >= least else DONT_KNOW


def prompt_of(vocabulary: Vocabulary, question: str) -> list[int]:
    """The question as fine-tuning showed it: its tokens and MASK, after which the answer begins."""
    return [*vocabulary.encode(question), vocabulary.mask]


def check_length(question: str, vocabulary: Vocabulary, context: int, where: str) -> None:
    """A question that leaves no room for an answer is refused, never cut."""
    length = len(prompt_of(vocabulary, question))
    if length > context:
        raise UserError(
            f"{where} has {length} tokens with the mark at its end, more than the model's context of {context}: "
            "shorten it."
        )


def check_lengths(asked: Questions, vocabulary: Vocabulary, context: int, source: str) -> None:
    for question, number in zip(asked.questions, asked.lines, strict=True):
        check_length(question, vocabulary, context, f"{source}, line {number}")


def answer(model: GPT, vocabulary: Vocabulary, questions: Sequence[str]) -> list[Said]:
    """What the model says to each question; questions of like length are decoded together."""
    prompts = [prompt_of(vocabulary, question) for question in questions]
    order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    said: dict[int, Said] = {}
    for start in range(0, len(order), QUESTIONS_AT_ONCE):
        part = order[start : start + QUESTIONS_AT_ONCE]
        answers = generate(model, [prompts[index] for index in part], LONGEST_ANSWER, stop=vocabulary.mask)
        for index, each in zip(part, answers, strict=True):
            said[index] = Said(vocabulary.decode(each.tokens), each.probability)
    return [said[index] for index in range(len(prompts))]


def score(predicted: Sequence[str], pairs: Sequence[tuple[str, str]]) -> float:
    """The share of questions answered to the letter."""
    right = sum(said == expected for said, (_, expected) in zip(predicted, pairs, strict=True))
    return right / max(1, len(pairs))


def most_common(train: Sequence[tuple[str, str]]) -> str:
    """What a model without knowledge should answer to everything: the most common place in training."""
    counts = Counter(place for _, place in train)
    return max(counts, key=lambda place: (counts[place], place))


def share_right(vocabulary: Vocabulary, pairs: Sequence[tuple[str, str]]) -> Callable[[nn.Module], dict[str, float]]:
    """Measure while training: the share of these questions the model answers right."""

    def evaluate(trained: nn.Module) -> dict[str, float]:
        model = trained if isinstance(trained, GPT) else trained.module
        assert isinstance(model, GPT)
        said = answer(model, vocabulary, [question for question, _ in pairs])
        return {"accuracy": score([each.text for each in said], pairs)}

    return evaluate
