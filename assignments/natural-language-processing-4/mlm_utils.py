"""Unlabelled text, and the masking of its pieces."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from batches import Inputs, attention_mask, pad
from data_utils import line_breaks, read_text
from errors import UserError
from mymodel import IGNORE
from wordpiece import WordPiece


class UnlabelledTexts:
    """Rows of pieces with [CLS] and [SEP], unmasked: mask_tokens masks a batch anew each time."""

    cut = 0
    """How many texts were cut to the length."""

    def __init__(self, rows: Sequence[list[int]], pad_id: int) -> None:
        self.rows, self.pad_id = rows, pad_id
        self.lengths = [len(row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(self.rows[index])

    def collate(self, indices: Sequence[int]) -> Inputs:
        rows = [self.rows[index] for index in indices]
        return {"input_ids": pad(rows, self.pad_id), "attention_mask": attention_mask(rows)}


class LineByLineTextDataset(UnlabelledTexts):
    """Every line is a text, cut to `block_size` pieces."""

    def __init__(self, tokenizer: WordPiece, args: argparse.Namespace, file_path: str, block_size: int = 512) -> None:
        encoded = [tokenizer.encode(line, longest=block_size) for line in _lines(file_path)]
        super().__init__([row.input_ids for row in encoded], tokenizer.pad_id)
        self.cut = sum(row.cut for row in encoded)


class TextDataset(UnlabelledTexts):
    """The whole file as one text, in blocks of `block_size` pieces."""

    def __init__(self, tokenizer: WordPiece, args: argparse.Namespace, file_path: str, block_size: int = 512) -> None:
        ids, room = tokenizer.piece_ids("\n".join(_lines(file_path))), block_size - 2
        rows = [[tokenizer.cls_id, *ids[at : at + room], tokenizer.sep_id] for at in range(0, len(ids), room)]
        super().__init__(rows, tokenizer.pad_id)


def load_and_cache_unlabeled_examples(args: argparse.Namespace, tokenizer: WordPiece) -> UnlabelledTexts:
    """The unlabelled texts of a command. `args.block_size` is a number of pieces already, not -1."""
    kind = LineByLineTextDataset if args.line_by_line else TextDataset
    return kind(tokenizer, args, args.train_data_file, args.block_size)


def mask_tokens(inputs: Tensor, tokenizer: WordPiece, args: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """A padded batch (B, T) with pieces hidden, and the targets: the hidden piece, IGNORE where none was chosen.

    Of the pieces of each text `args.mlm_probability` are chosen, at least one; of these 80% become [MASK], 10% a
    random piece, and 10% stay, so that a model cannot rely on seeing [MASK]. [CLS], [SEP] and padding are never chosen.
    """
    special = torch.tensor(sorted(tokenizer.special_ids), device=inputs.device)
    ordinary = ~torch.isin(inputs, special)  # (B, T)
    counts = (args.mlm_probability * ordinary.sum(1).double()).round().clamp(min=1)  # (B,)
    ranks = (torch.rand_like(inputs, dtype=torch.float) + ordinary).argsort(1, descending=True).argsort(1)
    chosen = ordinary & (ranks < counts[:, None])
    targets = inputs.where(chosen, IGNORE)

    draw = torch.rand_like(inputs, dtype=torch.float)
    pieces = torch.tensor(tokenizer.ordinary_ids)
    random = pieces[torch.randint(len(pieces), inputs.shape)].to(inputs.device)
    masked = inputs.masked_fill(chosen & (draw < 0.8), tokenizer.mask_id)
    return random.where(chosen & (draw >= 0.8) & (draw < 0.9), masked), targets


def _lines(file_path: str) -> list[str]:
    """The lines of the file that are not blank, with line breaks inside a review restored."""
    try:
        return [line_breaks(line) for line in read_text(Path(file_path)).split("\n") if line.strip()]
    except UserError as error:
        raise UserError(f"--train_data_file: {error}") from None
