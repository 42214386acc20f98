"""A linear classifier of counted words as the lab's models are: inputs from examples, logits from inputs, files.

    logits = W x + b,    x the sparse vector of a text

It is stored as words.json (the vocabulary) and safetensors (W and b): no pickle, and nothing is run when it is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.config.classify import EMBEDDINGS, MAJORITY, TFIDF
from attnlab.data.encoded import cut_texts
from attnlab.data.tasks.labelled import LabelledText
from attnlab.models.linear.logistic import Logistic
from attnlab.models.linear.tfidf import Tfidf

WORDS = "words.json"
TITLES = {
    MAJORITY: "the most common class",
    TFIDF: "TF-IDF with logistic regression",
    EMBEDDINGS: "logistic regression on the frozen encoder's vectors",
}


class SparseRows:
    """One example per text, as the places and values of its sparse vector; with labels."""

    def __init__(self, matrix: Any, labels: Sequence[int], cut: int = 0) -> None:
        self.rows: range = range(matrix.shape[0])
        self.matrix, self.labels, self.cut = matrix, list(labels), cut
        self.lengths = [max(1, int(count)) for count in matrix.indptr[1:] - matrix.indptr[:-1]]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        part = self.matrix[list(indices)]
        return {
            "places": torch.from_numpy(part.indices).long(),  # (N), of all rows together
            "values": torch.from_numpy(part.data).float(),  # (N)
            "starts": torch.from_numpy(part.indptr[:-1]).long(),  # (B)
            "labels": torch.tensor([self.labels[index] for index in indices]),
        }


class SparseLinear(nn.Module):
    """W (F, K) and b (K,), for sparse rows."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(width, classes)), nn.Parameter(torch.zeros(classes))

    def forward(self, places: Tensor, values: Tensor, starts: Tensor) -> Tensor:
        return F.embedding_bag(places, self.weight, starts, mode="sum", per_sample_weights=values) + self.bias

    @torch.no_grad()
    def take(self, fitted: Logistic) -> None:
        self.weight.copy_(torch.from_numpy(fitted.weight.T))
        self.bias.copy_(torch.from_numpy(fitted.bias))


class WordReader:
    """Texts to sparse rows; with a tokenizer, only as far as an encoder with it would read them.

    Without a vocabulary every text is the same empty row: what is left is how common the classes are.
    """

    def __init__(self, words: Tfidf | None, tokenizer: Any = None, longest: int | None = None) -> None:
        self.words, self.tokenizer, self.longest = words, tokenizer, longest

    @property
    def width(self) -> int:
        return self.words.width if self.words is not None else 1

    def encode(self, examples: Sequence[LabelledText]) -> SparseRows:
        from scipy.sparse import csr_matrix

        labels = [example.label for example in examples]
        if self.words is None:
            return SparseRows(csr_matrix((len(examples), 1)), labels)
        read, cut = self.as_read(examples)
        return SparseRows(self.words(read), labels, cut)

    def as_read(self, examples: Sequence[LabelledText]) -> tuple[list[LabelledText], int]:
        """The texts up to the limit, and how many are longer."""
        if self.tokenizer is None or self.longest is None:
            return list(examples), 0
        return cut_texts(examples, self.tokenizer, self.longest)
