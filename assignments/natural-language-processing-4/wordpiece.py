"""BERT's tokenizer: text to words, words to pieces of vocab.txt. The ids are those of transformers' BertTokenizer.

Words: controls are dropped, accents and upper case removed (uncased models), Chinese characters and punctuation
stand alone. Pieces: from the left the longest one in the vocabulary, inside a word with ## before it; a word that
cannot be split so is [UNK].
"""

from __future__ import annotations

import re
import string
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from errors import UserError
from files import read_json, write_json, write_whole

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SPECIAL_IN_TEXT = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
# What separates words. Other controls that Unicode calls spaces (vertical tab, next line) are dropped.
CHUNKS = re.compile("[^\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
IDEOGRAPHS = re.compile(
    "([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f"
    "\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f])"
)
LONGEST_WORD = 100
VOCABULARY, SETTINGS = "vocab.txt", "tokenizer_config.json"


class Encoded(NamedTuple):
    input_ids: list[int]
    token_type_ids: list[int]
    """0 for [CLS] first [SEP], 1 for second [SEP]."""
    cut: bool
    """Whether pieces were removed to keep within the length."""


class WordPiece:
    """A vocabulary in the order of its ids."""

    def __init__(self, pieces: list[str], settings: dict[str, Any] | None = None) -> None:
        settings = settings or {}
        self.pieces, self.ids = pieces, {piece: n for n, piece in enumerate(pieces)}
        self.lowercase = bool(settings.get("do_lower_case", True))
        accents = settings.get("strip_accents")
        self.strip_accents = self.lowercase if accents is None else bool(accents)
        self.ideographs = bool(settings.get("tokenize_chinese_chars", True))
        self.pad_id, self.unknown_id, self.cls_id, self.sep_id, self.mask_id = (self.ids[piece] for piece in SPECIAL)
        self.special_ids = frozenset(self.ids[piece] for piece in SPECIAL)
        self.ordinary_ids = [id_ for id_ in range(len(pieces)) if id_ not in self.special_ids]
        self._longest_piece = max(map(len, pieces))
        self._known: dict[str, list[int]] = {}  # most words occur often

    @classmethod
    def from_folder(cls, folder: Path) -> WordPiece:
        path = folder / VOCABULARY
        try:
            pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except OSError:
            raise UserError(f"{folder} has no {VOCABULARY}: give the folder of a BERT with its vocabulary.") from None
        except UnicodeDecodeError:
            raise UserError(f"{path} is not UTF-8: fetch it again.") from None
        pieces = [piece.removesuffix("\r") for piece in pieces]
        if missing := [piece for piece in SPECIAL if piece not in pieces]:
            raise UserError(f"{path} has no {missing[0]}: expected {', '.join(SPECIAL)}.")
        if len(set(pieces)) < len(pieces):
            raise UserError(f"{path} has a piece twice: remove one of them.")
        settings = folder / SETTINGS
        return cls(pieces, read_json(settings) if settings.is_file() else None)

    def save(self, folder: Path) -> None:
        write_whole(folder / VOCABULARY, ["".join(f"{piece}\n" for piece in self.pieces).encode()])
        settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": self.lowercase}
        settings |= {"strip_accents": self.strip_accents, "tokenize_chinese_chars": self.ideographs}
        write_json(folder / SETTINGS, settings)

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str, pair: str | None = None, longest: int = 512) -> Encoded:
        """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP]; the longer text is cut first."""
        first, second = self.piece_ids(text), self.piece_ids(pair) if pair is not None else []
        room, before = longest - (2 if pair is None else 3), len(first) + len(second)
        if before > room:
            short = min(len(first), len(second), room // 2)
            keep = (short, room - short) if len(first) <= len(second) else (room - short, short)
            first, second = first[: keep[0]], second[: keep[1]]
        ids = [self.cls_id, *first, self.sep_id]
        types = [0] * len(ids)
        if pair is not None:
            ids += [*second, self.sep_id]
            types += [1] * (len(second) + 1)
        return Encoded(ids, types, len(first) + len(second) < before)

    def piece_ids(self, text: str) -> list[int]:
        """The ids of a text without [CLS] and [SEP]; names of special pieces in the text become these pieces."""
        ids: list[int] = []
        for part in SPECIAL_IN_TEXT.split(text) if "[" in text else [text]:
            if part in SPECIAL:
                ids.append(self.ids[part])
                continue
            for chunk in CHUNKS.findall(part):
                if chunk not in self._known:
                    self._known[chunk] = [id_ for word in self._words(chunk) for id_ in self._split(word)]
                ids += self._known[chunk]
        return ids

    def _words(self, chunk: str) -> list[str]:
        """The words of a text without spaces, punctuation apart: `Don't!` to don ' t !"""
        chunk = "".join(c for c in chunk if not _is_dropped(c))
        if self.ideographs:
            chunk = IDEOGRAPHS.sub(r" \1 ", chunk)
        if self.strip_accents:
            chunk = "".join(c for c in unicodedata.normalize("NFD", chunk) if unicodedata.category(c) != "Mn")
        if self.lowercase:  # one character at a time: str.lower() of a word has a final form of sigma, BERT has not
            chunk = "".join(map(str.lower, chunk))
        return "".join(f" {c} " if _is_punctuation(c) else c for c in chunk).split(" ")

    def _split(self, word: str) -> list[int]:
        if len(word) > LONGEST_WORD:
            return [self.unknown_id]
        ids: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            end = min(len(word), start + self._longest_piece)
            while end > start and prefix + word[start:end] not in self.ids:
                end -= 1
            if end == start:
                return [self.unknown_id]
            ids.append(self.ids[prefix + word[start:end]])
            start, prefix = end, "##"
        return ids


@cache
def _is_dropped(c: str) -> bool:
    """Controls, formats (zero-width joiners, say), private characters, and what replaced an unreadable one."""
    return c == "\ufffd" or unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")


@cache
def _is_punctuation(c: str) -> bool:
    return c in string.punctuation or unicodedata.category(c).startswith("P")
