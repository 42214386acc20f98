"""Where an answer can have come from: the lines the model was pretrained on that name the person.

An answer that stands in one of these lines may have been retrieved; one that does not was made up, right or wrong.
This is told afterwards, from the text; it does not show how the model came to say it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

RETRIEVED, MADE_UP, NEVER_NAMED = "retrieved", "made up", "person never named"


@dataclass(frozen=True)
class Line:
    number: int
    text: str


@dataclass(frozen=True)
class Trace:
    """The lines that name a person, and which of them hold an answer."""

    name: str
    lines: list[Line]
    holding: list[int]
    """Numbers of the lines the answer is in."""

    @property
    def kind(self) -> str:
        if not self.lines:
            return NEVER_NAMED
        return RETRIEVED if self.holding else MADE_UP


class Reading:
    """What a model was pretrained on, by line, ready to be searched for names."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for place, line in enumerate(self.lines):
            for word in set(_words(line.text)):
                self._by_word[word].append(place)

    def naming(self, name: str) -> list[Line]:
        """The lines in which the name stands, as whole words and to the letter."""
        words = _words(name)
        if not words:
            return []
        rarest = min((self._by_word.get(word, []) for word in words), key=len)
        return [self.lines[place] for place in rarest if stands_in(name, self.lines[place].text)]

    def trace(self, name: str, answer: str) -> Trace:
        lines = self.naming(name)
        return Trace(name, lines, [line.number for line in lines if stands_in(answer, line.text)])


def stands_in(part: str, text: str) -> bool:
    """`part` occurs in `text` and is not a piece of longer words: "York" is in "New York", not in "Yorkshire"."""
    return bool(part.strip()) and re.search(rf"(?<!\w){re.escape(part.strip())}(?!\w)", text) is not None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
