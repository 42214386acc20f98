"""Questions and their answers, one pair a line: question, tab, answer."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from attnlab.data.lines import read_lines
from attnlab.errors import UserError


class Pair(NamedTuple):
    question: str
    answer: str


class Questions(NamedTuple):
    """Questions in the order of their file, with their answers if the file has them."""

    questions: list[str]
    answers: list[str] | None
    lines: list[int]
    """The number of each question's line: blank lines are no questions."""


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a labelled file; every line must have an answer."""
    return [split_pair(path, number, line) for number, line in read_lines(path)]


def read_questions(path: Path) -> Questions:
    """The questions of a file that is labelled or not: its first line tells which."""
    lines = read_lines(path)
    numbers = [number for number, _ in lines]
    first = numbers[0]
    if "\t" in lines[0][1]:
        pairs = [split_pair(path, number, line) for number, line in lines]
        return Questions([pair.question for pair in pairs], [pair.answer for pair in pairs], numbers)
    for number, line in lines:
        if "\t" in line:
            raise UserError(
                f"{path}, line {number} has an answer and line {first} has none: "
                "give answers on all lines or on no line."
            )
    return Questions([line for _, line in lines], None, numbers)


def split_pair(path: Path | str, number: int, line: str) -> Pair:
    """The question and the answer of a line; `path` and `number` say where it stands."""
    parts = line.split("\t")
    if len(parts) == 1:
        raise UserError(f"{path}, line {number} has no tab: write the question, a tab and the answer.")
    if len(parts) > 2:
        raise UserError(f"{path}, line {number} has {len(parts) - 1} tabs: keep the one before the answer.")
    for part, name in zip(parts, ("question", "answer"), strict=True):
        if not part.strip():
            raise UserError(f"{path}, line {number} has no {name}: write the question, a tab and the answer.")
    return Pair(*parts)
