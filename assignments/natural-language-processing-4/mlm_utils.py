"""Unlabelled text with masked words, with the names that scripts of this family use."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.tasks.catalog import TASKS
from attnlab.data.text.masking import MaskedExamples, MaskedRows, Masking, blocks
from attnlab.data.text.reading import read_prose
from attnlab.data.tokenizers.wordpiece import WordPiece


class _Sequence:
    """Rows by number, unmasked, for your own DataLoader."""

    rows: Sequence[list[int]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(self.rows[index])


class LineByLineTextDataset(_Sequence, MaskedExamples):
    """Every line is a text, cut to `block_size` pieces; masked differently every epoch when the lab batches it."""

    def __init__(self, tokenizer: WordPiece, args: argparse.Namespace, file_path: str, block_size: int = 512) -> None:
        super().__init__(_lines(args, file_path), _masking(tokenizer, args), block_size)


class TextDataset(_Sequence, MaskedRows):
    """The whole file as one text, cut into blocks of `block_size` pieces."""

    cut = 0

    def __init__(self, tokenizer: WordPiece, args: argparse.Namespace, file_path: str, block_size: int = 512) -> None:
        super().__init__(blocks("\n".join(_lines(args, file_path)), tokenizer, block_size), _masking(tokenizer, args))


def load_and_cache_unlabeled_examples(
    args: argparse.Namespace, tokenizer: WordPiece
) -> LineByLineTextDataset | TextDataset:
    """The unlabelled texts of a command. `args.block_size` is already a number of pieces, not -1."""
    kind = LineByLineTextDataset if args.line_by_line else TextDataset
    return kind(tokenizer, args, args.train_data_file, args.block_size)


def mask_tokens(inputs: Tensor, tokenizer: WordPiece, args: argparse.Namespace) -> tuple[Tensor, Tensor]:
    """For your own loop: a padded batch (B, T) masked, and its targets, -100 where nothing is masked.

    Of the chosen pieces 80% become [MASK], 10% a random piece, 10% stay. Draws follow torch's generator.
    """
    masking = Masking(tokenizer, args.mlm_probability, seed=int(torch.randint(2**31, ())))
    drawn = [masking(row, n, 0) for n, row in enumerate(inputs.tolist())]
    masked, targets = (torch.tensor(part) for part in zip(*drawn, strict=True))
    return masked, targets


def _masking(tokenizer: WordPiece, args: argparse.Namespace) -> Masking:
    return Masking(tokenizer, args.mlm_probability, seed=args.seed)


def _lines(args: argparse.Namespace, file_path: str) -> list[str]:
    """The lines of the file, with line breaks inside a review restored as in the labelled ones."""
    try:
        return [TASKS[args.task_name].clean(line) for line in read_prose(Path(file_path))]
    except UserError as error:
        raise UserError(f"--train_data_file: {error}") from None
