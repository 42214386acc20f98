"""Questions with the model's answers, and where the answers can come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnlab.evaluation.answer_trace import AnswerTrace
from attnlab.evaluation.sources import Sources
from attnlab.models.asking import ModelAnswer

AskModel = Callable[[Sequence[str]], list[ModelAnswer]]
"""Questions in, answers out, in the same order."""


@dataclass(frozen=True)
class AnsweredQuestion:
    question: str
    expected: str | None
    answer: ModelAnswer
    name: str | None
    """The person the question is about; None when it does not have the form of the training questions."""
    trace: AnswerTrace | None

    @property
    def right(self) -> bool:
        return self.answer.text == self.expected


def ask_questions(
    ask: AskModel, questions: Sequence[str], expected: Sequence[str] | None, sources: Sources
) -> list[AnsweredQuestion]:
    """Ask all questions and trace the answers in the pretraining text."""
    answered = []
    for index, (question, answer) in enumerate(zip(questions, ask(questions), strict=True)):
        name, text = sources.template.name_in(question), sources.pretraining
        trace = text.trace(name, answer.text) if name is not None and text is not None else None
        answered.append(AnsweredQuestion(question, expected[index] if expected else None, answer, name, trace))
    return answered
