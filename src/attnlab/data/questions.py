"""Questions and answers as training examples: question MASK answer MASK, with a loss on the answer only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnlab.data.lines import read_lines
from attnlab.data.sequences import Asked
from attnlab.data.vocabulary import Vocabulary
from attnlab.errors import UserError


class QuestionExamples:
    """One example a pair of question and answer."""

    def __init__(
        self, pairs: Sequence[tuple[str, str]], vocabulary: Vocabulary, context: int, file: str | None = None
    ) -> None:
        mask = vocabulary.mask
        self.prompts = [[*vocabulary.encode(question), mask] for question, _ in pairs]
        self.sequences = [[*prompt, *vocabulary.encode(answer), mask]
                          for prompt, (_, answer) in zip(self.prompts, pairs, strict=True)]  # fmt: skip
        self.lengths = [len(sequence) - 1 for sequence in self.sequences]
        for (question, answer), length in zip(pairs, self.lengths, strict=True):
            if length > context:
                raise UserError(
                    f"{_place(file, question, answer)}{question!r} with its answer {answer!r} is {length} tokens long, "
                    f"more than the context of {context}: shorten it or train with --context {length}."
                )

    def example(self, index: int, epoch: int) -> Asked:
        return Asked(self.sequences[index], given=len(self.prompts[index]))


def _place(file: str | None, question: str, answer: str) -> str:
    """Where the pair stands in its file, for a message."""
    if file is None:
        return ""
    pair = f"{question}\t{answer}"
    return f"{file}, line {next(number for number, line in read_lines(Path(file)) if line == pair)}: "
