"""A text read as one stream of tokens, and the blocks it is cut into.

The file is read in pieces, three times: for its length, for the vocabulary of its training part, and for its tokens.
The tokens of a long text are kept in a file that is mapped into memory: see prepared.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.text.pieces import TextPieces
from attnlab.data.text.prepared import LONG, Prepared, mapped
from attnlab.data.tokenizers.vocabulary import Vocabulary


@dataclass(frozen=True)
class Stream:
    """The tokens of a text in two parts, with the vocabulary of the training part."""

    vocabulary: Vocabulary
    train: Tensor  # (N,), of any integer type
    dev: Tensor  # (M,)

    @property
    def unknown_share(self) -> float:
        """The share of validation tokens that are not in the vocabulary."""
        return int((self.dev == self.vocabulary.unknown).sum()) / len(self.dev) if len(self.dev) else float("nan")


def read_stream(path: Path, level: str, dev_share: float, rare: int, long: int = LONG) -> Stream:
    """The text of a file as a stream; words seen fewer than `rare` times in training are unknown.

    A model can only learn to predict unknown words if there are some in training. A text of more than `long` bytes
    is prepared once, in the user's cache.
    """
    pieces = TextPieces(path, between_words=level == "words")

    def prepare() -> Prepared:
        pieces.doing = "counting characters"
        length = sum(map(len, pieces))
        cut = length - round(dev_share * length)
        train = (text for text, first in _parts(pieces, cut) if first)
        pieces.doing = f"counting {level}"
        vocabulary = Vocabulary.build(train, level, min_count=rare if level == "words" else 1)
        pieces.doing = "storing tokens"
        tokens = ((vocabulary.encode_array(text), first) for text, first in _parts(pieces, cut))
        return Prepared(vocabulary, tokens)

    if pieces.size > long:
        vocabulary, train, dev = mapped(path, (level, dev_share, rare), prepare)
        return Stream(vocabulary, torch.from_numpy(train), torch.from_numpy(dev))
    prepared = prepare()
    parts: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for ids, first in prepared.tokens:
        parts[first].append(ids)
    return Stream(prepared.vocabulary, _joined(parts[True]), _joined(parts[False]))


def _joined(arrays: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate([np.empty(0, np.int64), *arrays]))


def _parts(pieces: TextPieces, cut: int) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is before the cut, which moves to the end of a word it would divide."""
    start, found = 0, False
    for text in pieces:
        if not found and start + len(text) > cut:
            at = max(0, cut - start)
            while pieces.between_words and start + at > 0 and at < len(text) and not text[at].isspace():
                at += 1
            found = at < len(text)
            if text[:at]:
                yield text[:at], True
            if text[at:]:
                yield text[at:], False
        else:
            yield text, not found
        start += len(text)


@dataclass(frozen=True)
class Blocks:
    """Examples of equal length: tokens (N, T) and the next tokens (N, T), of any integer type."""

    tokens: Tensor
    targets: Tensor

    @classmethod
    def cut(cls, stream: Tensor, length: int) -> Blocks:
        """Cut a stream into consecutive blocks; a shorter rest at the end is left out."""
        end = max(0, len(stream) - 1) // length * length
        return cls(stream[:end].view(-1, length), stream[1 : end + 1].view(-1, length))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> list[int]:
        return [self.tokens.shape[1]] * len(self)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        chosen = torch.as_tensor(indices)
        tokens = self.tokens[chosen].long()  # (B, T)
        targets = self.targets[chosen].long()
        return {"tokens": tokens, "targets": targets, "padding": torch.ones_like(tokens, dtype=torch.bool)}

    def parts(self, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Tokens and targets of all blocks in their order, `rows` of them at once."""
        for tokens, targets in zip(self.tokens.split(rows), self.targets.split(rows), strict=True):
            yield tokens.long(), targets.long()

    def sample(self, count: int) -> Blocks:
        """At most `count` of the blocks, evenly spaced over the text: always the same ones."""
        count = min(count, len(self))
        kept = torch.arange(count) * len(self) // max(1, count)
        return Blocks(self.tokens[kept].long(), self.targets[kept].long())


def must_fill_a_block(path: Path, part: str, tokens: Tensor, length: int) -> None:
    """Raise if a text is shorter than one block."""
    if len(tokens) <= length:
        raise UserError(
            f"{path}: the {part} part has {len(tokens)} tokens, expected at least {length + 1} for one block: "
            "give a longer text, a shorter context or another --dev-share."
        )
