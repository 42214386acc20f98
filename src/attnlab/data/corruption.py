"""A corpus as training examples for a causal model: plain next-token prediction, or span corruption.

    causal   document MASK
    span     prefix MASK suffix MASK span MASK

where `span` was cut out between prefix and suffix (after T5, with a single span): the model is asked to tell
what is missing, which is the form a question takes later. The draw for an example depends on the seed, the
epoch and the example's number only, so that an epoch can be entered anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from attnlab.data.batching import pad
from attnlab.data.vocabulary import Vocabulary
from attnlab.objectives import IGNORE

Draw = Callable[[list[int], np.random.Generator], list[int]]


def next_token_tensors(sequences: Sequence[Sequence[int]], padding_id: int) -> dict[str, Tensor]:
    """Sequences as inputs and the targets one place on; padding is no target."""
    tokens = pad([sequence[:-1] for sequence in sequences], padding_id)  # (B, T)
    targets = pad([sequence[1:] for sequence in sequences], IGNORE)
    return {"tokens": tokens, "targets": targets, "padding": targets != IGNORE}


class CorpusExamples:
    """One example a document and epoch; a document longer than the context is entered at a random place."""

    def __init__(
        self, documents: Sequence[list[int]], vocabulary: Vocabulary, context: int, objective: str, seed: int
    ) -> None:
        self.documents, self.vocabulary, self.context, self.seed = documents, vocabulary, context, seed
        self.added, self.draw = OBJECTIVES[objective](vocabulary.mask)
        self.room = context + 1 - self.added  # the input is one shorter than the sequence
        self.lengths = [min(len(document), self.room) + self.added - 1 for document in documents]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        return next_token_tensors([self.example(index, epoch) for index in indices], self.vocabulary.pad)

    def example(self, index: int, epoch: int) -> list[int]:
        generator = np.random.default_rng([self.seed, epoch, index])
        document = self.documents[index]
        start = int(generator.integers(0, max(1, len(document) - self.room + 1)))
        return self.draw(document[start : start + self.room], generator)


def _causal(mask: int) -> tuple[int, Draw]:
    return 1, lambda document, generator: [*document, mask]


def _span(mask: int) -> tuple[int, Draw]:
    def draw(document: list[int], generator: np.random.Generator) -> list[int]:
        # Uniform up to half of the document: a quarter of it on average.
        length = int(generator.integers(1, max(2, len(document) // 2 + 1)))
        start = int(generator.integers(0, max(1, len(document) - length + 1)))
        span = document[start : start + length]
        return [*document[:start], mask, *document[start + length :], mask, *span, mask]

    return 3, draw


OBJECTIVES: dict[str, Callable[[int], tuple[int, Draw]]] = {"causal": _causal, "span": _span}
