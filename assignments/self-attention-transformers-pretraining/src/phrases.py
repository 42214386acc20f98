"""The phrases of a document that a reader must know and cannot guess: names of people, places and things.

A document is a title and sentences, `Ada Byron. Ada Byron was born in London .`. A phrase is a run of capitalised
words after the title, without months, without words of the title, which could be copied, and without an ordinary
word that is capitalised because it begins a sentence.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass

WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
MONTHS = frozenset(calendar.month_name[1:])
BEFORE_A_PLACE = re.compile(r"\b(in|at) $")
END_OF_SENTENCE = ". "


@dataclass(frozen=True)
class Phrase:
    start: int
    end: int
    place: bool
    """It follows `in` or `at`, as places do."""


@dataclass(frozen=True)
class Document:
    """A text, where its title ends, and its phrases in their order."""

    text: str
    title_end: int
    phrases: tuple[Phrase, ...]


def ordinary_words(texts: Iterable[str]) -> frozenset[str]:
    """The words that occur in lower case."""
    return frozenset(word for text in texts for word in WORD.findall(text) if word.islower())


def read_document(text: str, ordinary: frozenset[str]) -> Document:
    title, end, _ = text.partition(END_OF_SENTENCE)
    title_end = len(title) + len(end) if end else 0
    runs = _capitalised(text, title_end, frozenset(WORD.findall(title)) if end else frozenset(), ordinary)
    phrases = (Phrase(start, end, bool(BEFORE_A_PLACE.search(text, 0, start))) for start, end in runs)
    return Document(text, title_end, tuple(phrases))


def _capitalised(text: str, begin: int, title: frozenset[str], ordinary: frozenset[str]) -> list[tuple[int, int]]:
    """The runs of neighbouring capitalised words from `begin` on that make a phrase."""
    runs: list[tuple[int, int]] = []
    inside = False
    for match in WORD.finditer(text, begin):
        word, start = match[0], match.start()
        first = start == begin or text[:start].endswith(END_OF_SENTENCE)
        if not word[0].isupper() or word in MONTHS or word in title or (first and word.lower() in ordinary):
            inside = False
        elif inside and text[runs[-1][1] : start] == " ":
            runs[-1] = (runs[-1][0], match.end())
        else:
            runs.append(match.span())
            inside = True
    return runs
