"""Labelled texts as BERT reads them, alone or beside unlabelled ones with masked words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from attnlab.data.batching import pad
from attnlab.data.masking import MaskedRows
from attnlab.data.wordpiece import Encoded, WordPiece


class EncodedExamples:
    """One example a text, or a pair of texts: tokens, attention mask, segments if there are pairs, label."""

    def __init__(self, rows: Sequence[Encoded], labels: Sequence[int], pad_id: int, segments: bool) -> None:
        self.rows, self.labels, self.pad_id, self.segments = rows, list(labels), pad_id, segments
        self.cut = sum(row.cut for row in rows)
        self.lengths = [len(row.input_ids) for row in rows]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        rows = [self.rows[index] for index in indices]
        input_ids = pad([row.input_ids for row in rows], self.pad_id)  # (B, T)
        lengths = torch.tensor([self.lengths[index] for index in indices])
        inputs = {
            "input_ids": input_ids,
            "attention_mask": (torch.arange(input_ids.shape[1]) < lengths[:, None]).long(),
            "labels": torch.tensor([self.labels[index] for index in indices]),
        }
        if self.segments:
            inputs["token_type_ids"] = pad([row.token_type_ids for row in rows], 0)
        return inputs


class LabelledExamples(EncodedExamples):
    """Texts with labels, cut into pieces by WordPiece."""

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[int],
        tokenizer: WordPiece,
        longest: int,
        pairs: Sequence[str] | None = None,
        truncation: str = "longest_first",
    ) -> None:
        seconds = pairs if pairs is not None else [None] * len(texts)
        rows = [
            tokenizer.encode(text, second, longest, truncation) for text, second in zip(texts, seconds, strict=True)
        ]
        super().__init__(rows, labels, tokenizer.pad_id, pairs is not None)


class JointExamples:
    """Beside each labelled text an unlabelled one, whose tensors are called masked_….

    Unlabelled texts come in a random order that goes on from epoch to epoch, so that all are seen in turn however
    few labelled ones there are; which one goes with a labelled text depends on the seed and the epoch only.
    """

    def __init__(self, labelled: EncodedExamples, masked: MaskedRows, seed: int) -> None:
        self.labelled, self.masked, self.seed = labelled, masked, seed
        self.lengths = labelled.lengths

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        masked = self.masked.collate([self.partner(index, epoch) for index in indices], epoch)
        return self.labelled.collate(indices, epoch) | {f"masked_{name}": tensor for name, tensor in masked.items()}

    def partner(self, index: int, epoch: int) -> int:
        """The unlabelled text that goes with a labelled one."""
        count = len(self.masked.lengths)
        turn, place = divmod(epoch * len(self.lengths) + index, count)
        return int(_order(self.seed, turn, count)[place])


@lru_cache(maxsize=2)
def _order(seed: int, turn: int, count: int) -> np.ndarray:
    return np.random.default_rng([seed, turn]).permutation(count)
