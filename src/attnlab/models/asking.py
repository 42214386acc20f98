"""Questions in, answers out, each with the model's own confidence in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from attnlab.base.errors import UserError
from attnlab.data.questions import Questions
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.distributed.team import shared
from attnlab.models.generate import generate
from attnlab.models.gpt import GPT

LONGEST_ANSWER = 40  # tokens: longer than any place's name, in words or in characters
QUESTIONS_AT_ONCE = 128  # sorted by length: more would add padding, fewer would leave cores idle
DONT_KNOW = "I don't know"
MEANING = "the model's probability of its whole answer: the product over its tokens and the stop after them"


@dataclass(frozen=True)
class ModelAnswer:
    """An answer and the model's probability of exactly that text, the stop included."""

    text: str
    confidence: float


def prompt_of(vocabulary: Vocabulary, question: str) -> list[int]:
    """The question as in fine-tuning: its tokens and MASK, after which the answer begins."""
    return [*vocabulary.encode(question), vocabulary.mask]


def check_length(question: str, vocabulary: Vocabulary, context: int, where: str) -> None:
    """Refuse a question that leaves no room for an answer; it is never cut."""
    length = len(prompt_of(vocabulary, question))
    if length > context:
        raise UserError(
            f"{where} has {length} tokens including the mark at its end, more than the model's context of {context}: "
            "shorten it."
        )


def check_lengths(questions: Questions, vocabulary: Vocabulary, context: int, source: str) -> None:
    for question, number in zip(questions.questions, questions.lines, strict=True):
        check_length(question, vocabulary, context, f"{source}, line {number}")


def answer(model: GPT, vocabulary: Vocabulary, questions: Sequence[str]) -> list[ModelAnswer]:
    """The model's answer to each question; questions of similar length are decoded together."""
    prompts = [prompt_of(vocabulary, question) for question in questions]
    order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))

    def decoded(part: Sequence[int]) -> list[ModelAnswer]:
        generated = generate(model, [prompts[index] for index in part], LONGEST_ANSWER, stop=vocabulary.mask)
        return [ModelAnswer(vocabulary.decode(output.tokens), output.probability) for output in generated]

    parts = [order[start : start + QUESTIONS_AT_ONCE] for start in range(0, len(order), QUESTIONS_AT_ONCE)]
    in_order = (reply for part in shared(parts, decoded) for reply in part)
    answers = dict(zip(order, in_order, strict=True))
    return [answers[index] for index in range(len(prompts))]


def score(predicted: Sequence[str], pairs: Sequence[tuple[str, str]]) -> float:
    """The share of questions whose answer is exactly the expected one."""
    right = sum(text == expected for text, (_, expected) in zip(predicted, pairs, strict=True))
    return right / max(1, len(pairs))


def most_common(train: Sequence[tuple[str, str]]) -> str:
    """The best constant answer: the most common place in training."""
    counts = Counter(place for _, place in train)
    return max(counts, key=lambda place: (counts[place], place))


def accuracy_measure(
    vocabulary: Vocabulary, pairs: Sequence[tuple[str, str]]
) -> Callable[[nn.Module], dict[str, float]]:
    """A measure for the training loop: the model's accuracy on these questions."""

    def evaluate(trained: nn.Module) -> dict[str, float]:
        model = trained if isinstance(trained, GPT) else trained.module
        assert isinstance(model, GPT)
        answers = answer(model, vocabulary, [question for question, _ in pairs])
        return {"accuracy": score([given.text for given in answers], pairs)}

    return evaluate
