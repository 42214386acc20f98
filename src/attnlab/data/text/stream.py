"""A text as one stream of tokens, cut into blocks: language modelling as it is usually measured.

The beginning of the text is for training, its end for validation. A block of T tokens is the input, the same
block shifted by one the target, so every token but the first is predicted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.text.reading import read_text
from attnlab.data.tokenizers.vocabulary import Vocabulary


@dataclass(frozen=True)
class Stream:
    """The tokens of a text in two parts, with the vocabulary of the training part."""

    vocabulary: Vocabulary
    train: Tensor  # (N,)
    dev: Tensor  # (M,)

    @property
    def unknown_share(self) -> float:
        """The share of validation tokens that are not in the vocabulary."""
        return float((self.dev == self.vocabulary.unknown).float().mean())


def read_stream(path: Path, level: str, dev_share: float, rare: int) -> Stream:
    """The text of a file as a stream; words seen fewer than `rare` times in training are unknown.

    A model can only learn to predict unknown words if there are some in training.
    """
    text = read_text(path)
    cut = len(text) - round(dev_share * len(text))
    while level == "words" and 0 < cut < len(text) and not text[cut].isspace():
        cut += 1  # between two words
    train, dev = text[:cut], text[cut:]
    vocabulary = Vocabulary.build([train], level, min_count=rare if level == "words" else 1)
    return Stream(vocabulary, _tensor(vocabulary.encode(train)), _tensor(vocabulary.encode(dev)))


def _tensor(ids: list[int]) -> Tensor:
    return torch.tensor(ids, dtype=torch.long)


@dataclass(frozen=True)
class Blocks:
    """Examples of equal length: tokens (N, T) and the next tokens (N, T)."""

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
        tokens = self.tokens[chosen]  # (B, T)
        return {"tokens": tokens, "targets": self.targets[chosen], "padding": torch.ones_like(tokens, dtype=torch.bool)}

    def sample(self, count: int) -> Blocks:
        """At most `count` of the blocks, evenly spaced over the text: always the same ones."""
        count = min(count, len(self))
        kept = torch.arange(count) * len(self) // max(1, count)
        return Blocks(self.tokens[kept], self.targets[kept])


def must_fill_a_block(path: Path, part: str, tokens: Tensor, length: int) -> None:
    """Raise if a text is shorter than one block."""
    if len(tokens) <= length:
        raise UserError(
            f"{path}: the {part} part has {len(tokens)} tokens, expected at least {length + 1} for one block: "
            "give a longer text, a shorter context or another --dev-share."
        )
