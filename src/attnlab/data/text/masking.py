"""Masked words: which pieces are hidden from the model, and what replaces them. Devlin et al. 2018.

Of the pieces of a text, a share (15%) is chosen; of these 80% become [MASK], 10% a random piece, 10% stay as they
are. Special pieces are never chosen. A draw depends only on the seed, the epoch and the text's index, so training can
resume anywhere in an epoch and every epoch hides other pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.batching import IGNORE, pad
from attnlab.data.tokenizers.wordpiece import Encoded, WordPiece


class Pieces(Protocol):
    """The tokenizer that masking needs: WordPiece, or anything with these members."""

    mask_id: int
    pad_id: int
    special_ids: frozenset[int]

    @property
    def inside(self) -> Sequence[bool]:
        """For every id, whether the piece continues a word."""
        ...

    def __len__(self) -> int: ...

    def encode(self, text: str, pair: str | None = None, longest: int | None = None, /) -> Encoded: ...


@dataclass(frozen=True)
class Masking:
    """How pieces are hidden."""

    tokenizer: Pieces
    share: float = 0.15
    """Of the pieces that are not special; rounded, at least one per text."""
    masked: float = 0.8
    """Share of the chosen pieces that become [MASK]."""
    random: float = 0.1
    """Share of the chosen pieces that become a random piece. The others stay."""
    whole_words: bool = False
    """Choose words, with all their pieces, instead of pieces."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("share", "masked", "random"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise UserError(f"{name} is {getattr(self, name)}: give a number from 0 to 1.")
        if self.share == 0.0:
            raise UserError("share is 0, so no piece would be masked: give a number above 0.")
        if self.masked + self.random > 1.0:
            raise UserError(f"masked {self.masked} and random {self.random} add up to more than 1.")

    def __call__(self, ids: Sequence[int], index: int, epoch: int) -> tuple[list[int], list[int]]:
        """The model's input and the targets: the right piece at chosen positions, IGNORE elsewhere."""
        generator = np.random.default_rng([self.seed, epoch, index])
        shown, targets = list(ids), [IGNORE] * len(ids)
        for place in self._chosen(ids, generator):
            targets[place] = ids[place]
            draw = generator.random()
            if draw < self.masked:
                shown[place] = self.tokenizer.mask_id
            elif draw < self.masked + self.random:
                shown[place] = self.ordinary[generator.integers(len(self.ordinary))]
        return shown, targets

    def _chosen(self, ids: Sequence[int], generator: np.random.Generator) -> list[int]:
        units = self._units(ids)
        total = sum(map(len, units))
        count = max(1, round(self.share * total))
        chosen: list[int] = []
        for n in generator.permutation(len(units)):
            if len(chosen) >= count:
                break
            # A word longer than the rest is skipped, unless none was chosen yet: a text may be a single word.
            if len(chosen) + len(units[n]) <= count or not chosen:
                chosen += units[n]
        return chosen

    def _units(self, ids: Sequence[int]) -> list[list[int]]:
        """The positions that may be chosen, those of one word together with `whole_words`."""
        units: list[list[int]] = []
        inside, before = self.tokenizer.inside, -2
        for place, id_ in enumerate(ids):
            if id_ in self.tokenizer.special_ids:
                continue
            if self.whole_words and inside[id_] and before == place - 1:
                units[-1].append(place)
            else:
                units.append([place])
            before = place
        return units

    @cached_property
    def ordinary(self) -> list[int]:
        """The ids a random piece is drawn from: all but the special ones."""
        return [id_ for id_ in range(len(self.tokenizer)) if id_ not in self.tokenizer.special_ids]


class MaskedRows:
    """Rows of pieces with [CLS] and [SEP], masked differently in every epoch."""

    def __init__(self, rows: Sequence[list[int]], masking: Masking) -> None:
        self.rows, self.masking = rows, masking
        self.lengths = [len(row) for row in rows]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        drawn = [self.masking(self.rows[index], index, epoch) for index in indices]
        lengths = torch.tensor([self.lengths[index] for index in indices])
        input_ids = pad([shown for shown, _ in drawn], self.masking.tokenizer.pad_id)  # (B, T)
        return {
            "input_ids": input_ids,
            "attention_mask": (torch.arange(input_ids.shape[1]) < lengths[:, None]).long(),
            "labels": pad([targets for _, targets in drawn], IGNORE),
        }


class MaskedExamples(MaskedRows):
    """Texts without labels, one row per text; longer ones are cut."""

    def __init__(self, texts: Sequence[str], masking: Masking, longest: int) -> None:
        encoded = [masking.tokenizer.encode(text, None, longest) for text in texts]
        self.cut = sum(row.cut for row in encoded)
        super().__init__([row.input_ids for row in encoded], masking)


def blocks(text: str, tokenizer: WordPiece, longest: int) -> list[list[int]]:
    """All of a text, as rows of [CLS], at most `longest` - 2 pieces, [SEP]."""
    ids, room = tokenizer.piece_ids(text), longest - 2
    if room < 1:
        raise UserError(f"blocks of {longest} pieces leave no room for text beside [CLS] and [SEP]: give 3 or more.")
    return [[tokenizer.cls_id, *ids[at : at + room], tokenizer.sep_id] for at in range(0, len(ids), room)]
