"""Labelled texts as training examples: tokenized once, padded to the longest in the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnlab.data.batching import pad


class TextExamples:
    """One example a text: tokens, padding, label."""

    def __init__(self, texts: Sequence[str], labels: Sequence[int], tokenizer: Any, longest: int) -> None:
        encoded = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        self.cut = sum(len(row) > longest for row in encoded)
        if self.cut:
            encoded = tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]
        self.rows, self.labels, self.pad_id = encoded, list(labels), tokenizer.pad_token_id
        self.lengths = [len(row) for row in encoded]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        tokens = pad([self.rows[index] for index in indices], self.pad_id)
        lengths = torch.tensor([self.lengths[index] for index in indices])
        return {
            "tokens": tokens,
            "padding": torch.arange(tokens.size(1)) < lengths[:, None],  # (B, T)
            "labels": torch.tensor([self.labels[index] for index in indices]),
        }


class FeatureExamples:
    """One example a text whose features were computed once: the body is frozen, so they never change."""

    def __init__(self, features: Tensor, labels: Sequence[int]) -> None:
        self.features, self.labels = features, torch.tensor(labels)
        self.lengths = [1] * len(labels)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        chosen = torch.as_tensor(indices)
        return {"features": self.features[chosen], "labels": self.labels[chosen]}
