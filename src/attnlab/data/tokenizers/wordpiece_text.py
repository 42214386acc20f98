"""Text to words as in BERT: cleaned, optionally in lower case without accents, punctuation as separate words.

The rules are those of the original BERT code and of the `tokenizers` library. Character classes are those of Python's
Unicode tables; the library's were frozen in 2015, so a character that entered Unicode later may be classed
differently there.
"""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass
from functools import cache

# What separates words. Other controls that Unicode calls spaces (vertical tab, next line) are dropped.
SPACES = "\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CHUNKS = re.compile(f"[^{SPACES}]+")
IDEOGRAPHS = re.compile(
    "([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f"
    "\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f])"
)
REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class Words:
    """The rules by which text becomes words."""

    lowercase: bool = True
    strip_accents: bool | None = None
    """None: the same as `lowercase`."""
    ideographs: bool = True
    """Every Chinese character is a word."""

    def chunks(self, text: str) -> list[str]:
        """The parts between spaces. Each is split independently of the others."""
        return CHUNKS.findall(text)

    def split(self, chunk: str) -> list[str]:
        """The words of a chunk, normalised."""
        return [word for part in CHUNKS.findall(self._normalised(chunk)) for word in _at_punctuation(part)]

    def _normalised(self, text: str) -> str:
        if text.isascii() and text.isprintable():
            return text.lower() if self.lowercase else text
        text = "".join(c for c in text if not _is_dropped(c))
        if self.ideographs:
            text = IDEOGRAPHS.sub(r" \1 ", text)
        if self.lowercase if self.strip_accents is None else self.strip_accents:
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        # One character at a time: str.lower() of a whole word uses the final form of sigma, BERT does not.
        return "".join(map(str.lower, text)) if self.lowercase else text


@cache
def _is_dropped(c: str) -> bool:
    """Controls, formats (zero-width joiners, say) and private characters are dropped."""
    return c == REPLACEMENT or unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")


@cache
def _is_punctuation(c: str) -> bool:
    return c in string.punctuation or unicodedata.category(c).startswith("P")


def _at_punctuation(text: str) -> list[str]:
    """`don't!` to don ' t !"""
    words: list[str] = []
    start = 0
    for at, c in enumerate(text):
        if _is_punctuation(c):
            words += [text[start:at], c] if at > start else [c]
            start = at + 1
    return [*words, text[start:]] if start < len(text) else words
