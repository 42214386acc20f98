"""Questions and answers as training examples: question MASK answer MASK, with a loss on the answer only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from attnlab.base.errors import UserError
from attnlab.data.sequences import TokenSequence
from attnlab.data.text.reading import read_lines
from attnlab.data.tokenizers.vocabulary import Vocabulary


class QuestionExamples:
    """One example per pair of question and answer."""

    def __init__(
        self, pairs: Sequence[tuple[str, str]], vocabulary: Vocabulary, context: int, file: str | None = None
    ) -> None:
        mask = vocabulary.mask
        self.prompts = [[*vocabulary.encode(question), mask] for question, _ in pairs]
        self.sequences = [
            [*prompt, *vocabulary.encode(answer), mask] for prompt, (_, answer) in zip(self.prompts, pairs, strict=True)
        ]
        self.lengths = [len(sequence) - 1 for sequence in self.sequences]
        for (question, answer), length in zip(pairs, self.lengths, strict=True):
            if length > context:
                raise UserError(
                    f"{_place(file, question, answer)}{question!r} with its answer {answer!r} is {length} tokens long, "
                    f"more than the context of {context}: shorten it or train with --context {length}."
                )

    def example(self, index: int, epoch: int) -> TokenSequence:
        return TokenSequence(self.sequences[index], given=len(self.prompts[index]))


def _place(file: str | None, question: str, answer: str) -> str:
    """The file and line of a pair, for a message."""
    if file is None:
        return ""
    pair = f"{question}\t{answer}"
    return f"{file}, line {next(number for number, line in read_lines(Path(file)) if line == pair)}: "


class Pair(NamedTuple):
    question: str
    answer: str


class Questions(NamedTuple):
    """Questions in the order of their file, with their answers if the file has them."""

    questions: list[str]
    answers: list[str] | None
    lines: list[int]
    """The line number of each question; blank lines are skipped."""


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a labelled file; every line must have an answer."""
    return [split_pair(path, number, line) for number, line in read_lines(path)]


def read_questions(path: Path) -> Questions:
    """The questions of a file, with answers if its first line has one."""
    lines = read_lines(path)
    numbers = [number for number, _ in lines]
    first = numbers[0]
    if "\t" in lines[0][1]:
        pairs = [split_pair(path, number, line) for number, line in lines]
        return Questions([pair.question for pair in pairs], [pair.answer for pair in pairs], numbers)
    for number, line in lines:
        if "\t" in line:
            raise UserError(
                f"{path}, line {number} has an answer, line {first} has none: give answers on all lines or on none."
            )
    return Questions([line for _, line in lines], None, numbers)


def split_pair(path: Path | str, number: int, line: str) -> Pair:
    """The question and the answer of a line; `path` and `number` are for messages."""
    parts = line.split("\t")
    if len(parts) == 1:
        raise UserError(f"{path}, line {number} has no tab: write the question, a tab and the answer.")
    if len(parts) > 2:
        raise UserError(
            f"{path}, line {number} has {len(parts) - 1} tabs, expected one: keep the one before the answer."
        )
    for part, name in zip(parts, ("question", "answer"), strict=True):
        if not part.strip():
            raise UserError(f"{path}, line {number} has no {name}: write the question, a tab and the answer.")
    return Pair(*parts)
