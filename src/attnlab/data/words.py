"""Text as words and punctuation marks, and back.

A word is a run of letters, marks, digits, apostrophes and hyphens; a number keeps its inner points
and commas; any other character that is not a space is a token of its own. Joining never merges two
tokens into one, so splitting a joined text gives back the same tokens, and text that is spaced in
the usual way comes back unchanged.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

_OPENING = frozenset("([{“‘«¿¡$£€#@")
_CLOSING = frozenset(")]}”»,.;:!?…%")
_BETWEEN = frozenset("/")


def split_words(text: str) -> list[str]:
    # \w leaves out combining marks, which would cut words apart in many scripts. A pattern with all
    # of them is five times as slow, so it is kept for the texts that have some.
    return _pattern(with_marks=not _marks().isdisjoint(text)).findall(text)


@cache
def _marks() -> frozenset[str]:
    return frozenset(c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c)[0] == "M")


@cache
def _pattern(with_marks: bool) -> re.Pattern[str]:
    marks = "".join(_marks()) if with_marks else ""
    return re.compile(rf"\d+(?:[.,]\d+)+|[\w'’\-{marks}]+|\S")


def join_words(tokens: Sequence[str]) -> str:
    """The tokens with spaces where English puts them."""
    pieces: list[str] = []
    glued = True  # no space before the next token
    inside_quotes = False
    for token in tokens:
        closing = token in _CLOSING or token in _BETWEEN or (token == '"' and inside_quotes)
        if not glued and not closing:
            pieces.append(" ")
        pieces.append(token)
        if token == '"':
            inside_quotes = not inside_quotes
        glued = token in _OPENING or token in _BETWEEN or (token == '"' and inside_quotes)
    return "".join(pieces)
