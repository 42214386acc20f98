"""The phrases of a document that a reader must know and cannot guess: names of people, places and things.

A document is a title and sentences, `Ada Byron. Ada Byron was born in London .`. A phrase is a run of capitalised
words after the title, without months and without words of the title, which could be copied.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass

WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
MONTHS = frozenset(calendar.month_name[1:])
END_OF_TITLE = ". "


@dataclass(frozen=True)
class Document:
    """A text, where its title ends, and its phrases in their order, each as (start, end)."""

    text: str
    title_end: int
    phrases: tuple[tuple[int, int], ...]


def read_document(text: str) -> Document:
    title, separator, _ = text.partition(END_OF_TITLE)
    if not separator:
        return Document(text, 0, _capitalised(text, 0, frozenset()))
    end = len(title) + len(separator)
    return Document(text, end, _capitalised(text, end, frozenset(WORD.findall(title))))


def _capitalised(text: str, begin: int, known: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """Runs of capitalised words from `begin` on that are neither months nor among `known`."""
    runs: list[tuple[int, int]] = []
    open_run = False
    for word in WORD.finditer(text, begin):
        if not word[0][0].isupper() or word[0] in MONTHS or word[0] in known:
            open_run = False
        elif open_run and text[runs[-1][1] : word.start()] == " ":
            runs[-1] = (runs[-1][0], word.end())
        else:
            runs.append(word.span())
            open_run = True
    return tuple(runs)
