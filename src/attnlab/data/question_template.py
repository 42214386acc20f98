"""The form of questions: the person is named in the part in which questions differ from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.data.sequences import common_start


@dataclass(frozen=True)
class QuestionTemplate:
    """Questions begin and end alike, with a name in between: "Where was " … " born?"."""

    before: str
    after: str

    @classmethod
    def of(cls, questions: Sequence[str]) -> QuestionTemplate:
        """The longest common beginning and end, cut back to whole words; both are empty for a single question."""
        different = sorted(set(questions))
        if len(different) < 2:
            return cls("", "")
        before = different[0][: common_start(different)]
        rest = [question[len(before) :] for question in different]
        ends = common_start([text[::-1] for text in rest])
        after = rest[0][len(rest[0]) - ends :]
        # Names that all begin or end with the same letters must keep them.
        before = before[: before.rfind(" ") + 1]
        after = after[after.find(" ") :] if " " in after else _punctuation(after)
        return cls(before, after)

    def name_in(self, question: str) -> str | None:
        """The person the question is about; None when it has another form."""
        fits = question.startswith(self.before) and question.endswith(self.after)
        inner = question[len(self.before) : len(question) - len(self.after)].strip()
        return inner if fits and inner and len(question) >= len(self.before) + len(self.after) else None

    def question_about(self, name: str) -> str:
        return f"{self.before}{name}{self.after}"


def _punctuation(text: str) -> str:
    """The marks at the end of a text without a space: in "er?" the letters belong to a name."""
    return text[len(text.rstrip("?!.:")) :]
