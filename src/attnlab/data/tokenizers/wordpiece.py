"""WordPiece: text to the ids of pieces and back, in plain Python. Devlin et al. 2018, arXiv:1810.04805.

A word is split from the left into the longest pieces of the vocabulary; pieces inside a word begin with ##. A word
that cannot be split, or is too long, is [UNK]. The ids of every chunk between spaces are cached, so a text costs one
dictionary lookup per word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from attnlab.base.errors import UserError, unknown
from attnlab.data.tokenizers.wordpiece_text import Words

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
INSIDE = "##"
LONGEST_WORD = 100
CACHED = 2**20  # chunks; further ones are split each time
TRUNCATIONS = ("longest_first", "only_first", "only_second")
ATTACHED = (".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re")  # written without the space before them


class Encoded(NamedTuple):
    """One or two texts as the model reads them."""

    input_ids: list[int]
    token_type_ids: list[int]
    """0 for [CLS] first [SEP], 1 for second [SEP]."""
    cut: bool
    """Whether pieces were removed to keep within the length."""


class WordPiece:
    """A vocabulary of pieces in the order of their ids, and the rules by which text becomes words."""

    def __init__(self, pieces: Sequence[str], words: Words | None = None) -> None:
        self.vocabulary = tuple(pieces)
        self.words = words or Words()
        self.ids = {piece: id_ for id_, piece in enumerate(self.vocabulary)}
        if len(self.ids) != len(self.vocabulary):
            twice = next(p for n, p in enumerate(self.vocabulary) if self.ids[p] != n)
            raise UserError(f"the vocabulary has the piece {twice!r} twice: remove one of them.")
        missing = [piece for piece in SPECIAL if piece not in self.ids]
        if missing:
            raise UserError(f"the vocabulary has no {missing[0]}: expected {', '.join(SPECIAL)}.")
        self.pad_id, self.unknown_id, self.cls_id, self.sep_id, self.mask_id = (self.ids[p] for p in SPECIAL)
        self.special_ids = frozenset(self.ids[piece] for piece in SPECIAL)
        self._longest_piece = max(map(len, self.vocabulary))
        self._specials = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
        self._cache: dict[str, list[int]] = {}

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> WordPiece:
        """The tokenizer of a Hugging Face folder: tokenizer.json, or vocab.txt with tokenizer_config.json."""
        from attnlab.data.tokenizers.wordpiece_files import read_tokenizer

        return read_tokenizer(Path(folder))

    @classmethod
    def learn(cls, texts: Iterable[str], size: int, words: Words | None = None) -> WordPiece:
        """A vocabulary of at most `size` pieces, learned from these texts."""
        from attnlab.data.tokenizers.wordpiece_learn import learn_pieces

        words = words or Words()
        return cls([*SPECIAL, *learn_pieces(texts, size - len(SPECIAL), words)], words)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write files that both the lab and `transformers` read."""
        from attnlab.data.tokenizers.wordpiece_files import save_tokenizer

        save_tokenizer(self, Path(folder))

    def __len__(self) -> int:
        return len(self.vocabulary)

    @cached_property
    def inside(self) -> tuple[bool, ...]:
        """For every id, whether the piece continues a word."""
        return tuple(piece.startswith(INSIDE) for piece in self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        return [self.vocabulary[id_] for id_ in self.piece_ids(text)]

    def piece_ids(self, text: str) -> list[int]:
        """The ids of a text without [CLS] and [SEP]; names of special pieces in the text become these pieces."""
        ids: list[int] = []
        cache = self._cache
        for part in self._specials.split(text) if "[" in text else [text]:
            if part in SPECIAL:
                ids.append(self.ids[part])
                continue
            for chunk in self.words.chunks(part):
                found = cache.get(chunk)
                ids += self._cut_chunk(chunk) if found is None else found
        return ids

    def encode(
        self, text: str, pair: str | None = None, longest: int | None = None, truncation: str = "longest_first"
    ) -> Encoded:
        """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP], in at most `longest` pieces."""
        first = self.piece_ids(text)
        second = None if pair is None else self.piece_ids(pair)
        before = len(first) + len(second or ())
        if longest is not None:
            first, second = truncate(first, second, longest - (2 if second is None else 3), truncation)
        ids = [self.cls_id, *first, self.sep_id]
        types = [0] * len(ids)
        if second is not None:
            ids += [*second, self.sep_id]
            types += [1] * (len(second) + 1)
        return Encoded(ids, types, len(first) + len(second or ()) < before)

    def decode(self, ids: Iterable[int], skip_special: bool = True) -> str:
        """The pieces as text: joined to words, one space between them, none before a full stop or comma."""
        out: list[str] = []
        for id_ in ids:
            if skip_special and id_ in self.special_ids:
                continue
            piece = self.vocabulary[id_]
            if out and piece.startswith(INSIDE):
                piece = piece.removeprefix(INSIDE)
            elif out and not piece.startswith(ATTACHED):
                piece = f" {piece}"
            out.append(piece)
        return "".join(out)

    def _cut_chunk(self, chunk: str) -> list[int]:
        ids = [id_ for word in self.words.split(chunk) for id_ in self._cut_word(word)]
        if len(self._cache) < CACHED:
            self._cache[chunk] = ids
        return ids

    def _cut_word(self, word: str) -> list[int]:
        """Split greedily: the longest piece that fits, repeatedly."""
        if len(word) > LONGEST_WORD:
            return [self.unknown_id]
        ids: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            end = min(len(word), start + self._longest_piece)
            while end > start and (id_ := self.ids.get(prefix + word[start:end])) is None:
                end -= 1
            if end == start or id_ is None:
                return [self.unknown_id]
            ids.append(id_)
            start, prefix = end, INSIDE
        return ids


def truncate(
    first: list[int], second: list[int] | None, room: int, truncation: str
) -> tuple[list[int], list[int] | None]:
    """Cut at the end so that both together have at most `room` pieces.

    `longest_first` cuts the longer one until both are equally long, then both.
    """
    if truncation not in TRUNCATIONS:
        raise UserError(unknown("truncation", truncation, TRUNCATIONS))
    if room < 0:
        raise UserError(f"a length limit below {2 if second is None else 3} leaves no room for [CLS] and [SEP].")
    over = len(first) + len(second or ()) - room
    if over <= 0:
        return first, second
    if truncation == "longest_first":
        if second is None:
            return first[:room], None
        short = min(len(first), len(second), room // 2)
        keep = (short, room - short) if len(first) <= len(second) else (room - short, short)
        return first[: keep[0]], second[: keep[1]]
    chosen = first if truncation == "only_first" else second
    if chosen is None or len(chosen) <= over:  # at least one piece must be left
        raise UserError(
            f"truncation {truncation!r} cannot reduce {room + over} pieces to {room}: "
            "raise the length limit or use longest_first."
        )
    if truncation == "only_first":
        return first[: len(first) - over], second
    return first, chosen[: len(chosen) - over]
