"""From text to numbers and back: a vocabulary of characters or of words.

The first three tokens are special. PAD fills a sequence up to the length of its batch, MASK marks the
ends of a hidden span (or of an answer), UNKNOWN replaces every token that is not in the vocabulary. Plain text
never produces PAD or MASK, whatever characters it has, unless the caller passes `special=True`.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.base.errors import UserError, unknown
from attnlab.base.files import read_json

PAD_CHAR = "\u25a1"  # □
MASK_CHAR = "\u2047"  # ⁇
UNKNOWN_CHAR = "\ufffd"  # �
SPECIAL = (PAD_CHAR, MASK_CHAR, UNKNOWN_CHAR)

LEVELS = ("characters", "words")


@dataclass(frozen=True)
class Vocabulary:
    """The tokens in the order of their ids."""

    level: str
    tokens: tuple[str, ...]

    pad = 0
    mask = 1
    unknown = 2

    @classmethod
    def build(cls, texts: Iterable[str], level: str = "characters", min_count: int = 1) -> Vocabulary:
        """The tokens that occur in the texts at least `min_count` times, in the order of their characters."""
        if level not in LEVELS:
            raise UserError(unknown("vocabulary level", level, LEVELS))
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text if level == "characters" else split_words(text))
        frequent = {token for token, count in counts.items() if count >= min_count}
        return cls(level, (*SPECIAL, *sorted(frequent.difference(SPECIAL))))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: id_ for id_, token in enumerate(self.tokens)}

    @cached_property
    def _plain_ids(self) -> dict[str, int]:
        return {token: id_ for token, id_ in self._ids.items() if token not in SPECIAL}

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The ids of the text's tokens; with `special`, PAD_CHAR and MASK_CHAR are the tokens they name."""
        ids = self._ids if special else self._plain_ids
        tokens = text if self.level == "characters" else split_words(text)
        return [ids.get(token, self.unknown) for token in tokens]

    def encode_array(self, text: str) -> np.ndarray:
        """The ids of a plain text's tokens as an array, for long texts."""
        if self.level == "words":
            ids = self._plain_ids
            return np.fromiter((ids.get(token, self.unknown) for token in split_words(text)), np.int32)
        return self._id_of_code[np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)]

    @cached_property
    def _id_of_code(self) -> np.ndarray:
        """The id of every character, by its code."""
        table = np.full(sys.maxunicode + 1, self.unknown, np.int32)
        for token, id_ in self._plain_ids.items():
            table[ord(token)] = id_
        return table

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids, with special tokens as their characters."""
        return "".join(self.pieces(ids))

    def pieces(self, ids: Iterable[int]) -> Iterator[str]:
        """The text that each id adds to those before it, as soon as it is known."""
        tokens = (self.tokens[id_] for id_ in ids)
        return tokens if self.level == "characters" else word_pieces(tokens)

    def unknown_share(self, text: str) -> float:
        """The share of the text's tokens that are not in the vocabulary."""
        ids = self.encode(text)
        return ids.count(self.unknown) / len(ids) if ids else 0.0

    def missing(self, texts: Iterable[str]) -> list[str]:
        """The tokens of the texts that are not in the vocabulary, the most frequent first."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text if self.level == "characters" else split_words(text))
        return [token for token, _ in counts.most_common() if token not in self._plain_ids]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, from which from_dict builds the same vocabulary."""
        return {"level": self.level, "tokens": list(self.tokens)}

    @classmethod
    def read(cls, file: Path) -> Vocabulary:
        """The vocabulary in a run folder's vocabulary.json."""
        saved = read_json(file)
        try:
            return cls.from_dict(saved)
        except UserError as error:
            raise UserError(f"{file}: {error}") from None

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Vocabulary:
        level, tokens = saved.get("level"), saved.get("tokens")
        if (
            level not in LEVELS
            or not isinstance(tokens, list)
            or not all(isinstance(token, str) for token in tokens)
            or tuple(tokens[: len(SPECIAL)]) != SPECIAL
            or len(set(tokens)) != len(tokens)
        ):
            raise UserError(
                "the saved vocabulary is damaged: expected a level and a list of different tokens "
                "that begins with the three special ones."
            )
        return cls(level, tuple(tokens))


_OPENING = frozenset("([{“‘«¿¡$£€#@")
_CLOSING = frozenset(")]}”»,.;:!?…%")
_BETWEEN = frozenset("/")


def split_words(text: str) -> list[str]:
    # \w excludes combining marks, which would split words in many scripts. A pattern with all of them is five times
    # as slow, so it is used only for texts that have some.
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
    return "".join(word_pieces(tokens))


def word_pieces(tokens: Iterable[str]) -> Iterator[str]:
    """Each token, after a space where English puts one."""
    glued = True  # no space before the next token
    inside_quotes = False
    for token in tokens:
        closing = token in _CLOSING or token in _BETWEEN or (token == '"' and inside_quotes)
        yield token if glued or closing else f" {token}"
        if token == '"':
            inside_quotes = not inside_quotes
        glued = token in _OPENING or token in _BETWEEN or (token == '"' and inside_quotes)
