"""Where an answer can come from: the lines of the pretraining text that name the person.

An answer that occurs in one of these lines may have been retrieved; one that does not was made up, right or wrong.
This is read from the text afterwards; it does not show how the model arrived at the answer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

RETRIEVED, MADE_UP, NEVER_NAMED = "retrieved", "made up", "person never named"


@dataclass(frozen=True)
class CorpusLine:
    number: int
    text: str


@dataclass(frozen=True)
class AnswerTrace:
    """The lines that name a person, and which of them contain an answer."""

    name: str
    lines: list[CorpusLine]
    with_answer: list[int]
    """Numbers of the lines that contain the answer."""

    @property
    def kind(self) -> str:
        if not self.lines:
            return NEVER_NAMED
        return RETRIEVED if self.with_answer else MADE_UP


class PretrainingText:
    """The lines a model was pretrained on, indexed by word so that names are found fast."""

    def __init__(self, lines: Iterable[CorpusLine]) -> None:
        self.lines = list(lines)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for index, line in enumerate(self.lines):
            for word in set(_words(line.text)):
                self._by_word[word].append(index)

    def lines_naming(self, name: str) -> list[CorpusLine]:
        """The lines that contain the name, as whole words and letter for letter."""
        words = _words(name)
        if not words:
            return []
        rarest = min((self._by_word.get(word, []) for word in words), key=len)
        return [self.lines[index] for index in rarest if contains_words(self.lines[index].text, name)]

    def trace(self, name: str, answer: str) -> AnswerTrace:
        lines = self.lines_naming(name)
        return AnswerTrace(name, lines, [line.number for line in lines if contains_words(line.text, answer)])


def contains_words(text: str, part: str) -> bool:
    """`part` occurs in `text` as whole words: "York" is in "New York", not in "Yorkshire"."""
    return bool(part.strip()) and re.search(rf"(?<!\w){re.escape(part.strip())}(?!\w)", text) is not None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
