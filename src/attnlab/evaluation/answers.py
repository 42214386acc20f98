"""Questions with the model's answers, and where the answers can come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.evaluation.answer_trace import AnswerTrace
from attnlab.evaluation.name_probability import name_probabilities
from attnlab.evaluation.sources import Sources
from attnlab.models.asking import ModelAnswer, answer
from attnlab.models.gpt import GPT


@dataclass(frozen=True)
class AskedModel:
    """A model and its vocabulary: what can be asked of them."""

    model: GPT
    vocabulary: Vocabulary

    def answers(self, questions: Sequence[str]) -> list[ModelAnswer]:
        return answer(self.model, self.vocabulary, questions)

    def name_probabilities(self, names: Sequence[str]) -> list[float | None]:
        return name_probabilities(self.model, self.vocabulary, names)

    def has_words(self, text: str) -> bool:
        """The vocabulary has all tokens of the text."""
        return self.vocabulary.unknown_share(text) == 0


@dataclass(frozen=True)
class AnsweredQuestion:
    question: str
    expected: str | None
    answer: ModelAnswer
    name: str | None
    """The person the question is about; None when it does not have the form of the training questions."""
    name_probability: float | None
    """None without a name, or for one of a single token."""
    trace: AnswerTrace | None

    @property
    def right(self) -> bool:
        return self.answer.text == self.expected


def ask_questions(
    asked: AskedModel, questions: Sequence[str], expected: Sequence[str] | None, sources: Sources
) -> list[AnsweredQuestion]:
    """Ask all questions and trace the answers in the pretraining text."""
    names = [sources.template.name_in(question) for question in questions]
    probabilities = asked.name_probabilities([name or "" for name in names])
    answered = []
    for index, (question, given) in enumerate(zip(questions, asked.answers(questions), strict=True)):
        name, text = names[index], sources.pretraining
        trace = text.trace(name, given.text) if name is not None and text is not None else None
        answered.append(
            AnsweredQuestion(question, expected[index] if expected else None, given, name, probabilities[index], trace)
        )
    return answered
