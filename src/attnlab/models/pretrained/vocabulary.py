"""How many tokens a folder's tokenizer can name, read from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.data.text.reading import read_text
from attnlab.data.tokenizers.wordpiece_files import read_json

SENTENCEPIECE = ("spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", *SENTENCEPIECE)
"""Any of these makes a tokenizer, the first in this list that is there is read."""


def count_tokens(folder: Path) -> int:
    """One more than the largest token number."""
    path = next((folder / name for name in TOKENIZERS if (folder / name).is_file()), None)
    if path is None:
        raise UserError(f"{folder} has no tokenizer: there must be a {', '.join(TOKENIZERS[:-1])} or {TOKENIZERS[-1]}.")
    try:
        if path.name == "tokenizer.json":
            return _from_tokenizer(read_json(path))
        if path.name == "vocab.txt":
            tokens = len(read_text(path).removesuffix("\n").split("\n"))
        elif path.name == "vocab.json":
            tokens = 1 + max(read_json(path).values())
        else:
            tokens = _pieces(path.read_bytes())
        added = folder / "added_tokens.json"
        return max(tokens, *(1 + place for place in read_json(added).values())) if added.is_file() else tokens
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise UserError(f"{path} is no tokenizer file: fetch it again.") from None


def _from_tokenizer(found: dict[str, Any]) -> int:
    """A vocabulary is {token: number}, or of a unigram model a list in order."""
    vocabulary = found["model"]["vocab"]
    tokens = len(vocabulary) if isinstance(vocabulary, list) else 1 + max(vocabulary.values())
    return max([tokens, *(1 + added["id"] for added in found.get("added_tokens") or [])])


def _pieces(content: bytes) -> int:
    """The pieces in a SentencePiece model: a protobuf message whose field 1 is repeated once a piece."""
    place = pieces = 0
    while place < len(content):
        key, place = _varint(content, place)
        field, kind = key >> 3, key & 7
        if kind == 2:  # a length, then so many bytes
            length, place = _varint(content, place)
            place += length
            pieces += field == 1
        elif kind == 0:
            _, place = _varint(content, place)
        else:
            place += {1: 8, 5: 4}[kind]
    if place != len(content) or not pieces:
        raise ValueError("cut short")
    return pieces


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number in 7 bits a byte, the least first, and where it ends."""
    value = shift = 0
    while True:
        byte = content[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place
