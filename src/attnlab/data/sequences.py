"""Sequences for a causal model: what it reads, and from which token on it predicts the next one.

Documents, corrupted documents and questions with answers are all sequences, so they can be mixed in one data set.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from attnlab.data.batching import IGNORE, pad
from attnlab.data.text.salient import find_phrases, title_length
from attnlab.data.tokenizers.vocabulary import Vocabulary


@dataclass(frozen=True)
class TokenSequence:
    """Tokens; the first `given` of them are not targets, except the `title` at their beginning."""

    tokens: list[int]
    given: int = 0
    title: int = 0


class SequenceSource(Protocol):
    """A source of sequences; `epoch` seeds what is drawn at random."""

    @property
    def lengths(self) -> Sequence[int]: ...

    def example(self, index: int, epoch: int) -> TokenSequence: ...


class NextTokenExamples:
    """Sequences of one or several sources as a data set that can be batched."""

    def __init__(self, sources: Sequence[SequenceSource], padding_id: int) -> None:
        self.sources, self.padding_id = sources, padding_id
        self.lengths = [length for source in sources for length in source.lengths]
        self._ends = list(accumulate(len(source.lengths) for source in sources))

    def example(self, index: int, epoch: int) -> TokenSequence:
        number = bisect_right(self._ends, index)
        return self.sources[number].example(index - (self._ends[number - 1] if number else 0), epoch)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        return next_token_tensors([self.example(index, epoch) for index in indices], self.padding_id)


def next_token_tensors(sequences: Sequence[TokenSequence], padding_id: int) -> dict[str, Tensor]:
    """Sequences as inputs (B, T) and targets shifted by one; padding and given tokens are not targets."""
    tokens = pad([sequence.tokens[:-1] for sequence in sequences], padding_id)
    targets = pad([sequence.tokens[1:] for sequence in sequences], IGNORE)
    padding = targets != IGNORE
    given = torch.tensor([sequence.given for sequence in sequences])[:, None]  # (B, 1)
    title = torch.tensor([sequence.title for sequence in sequences])[:, None]
    target = torch.arange(1, tokens.shape[1] + 1)  # the target at position t is token t + 1
    before = (target >= title) & (target < given)  # (B, T)
    wanted = padding & ~before
    return {"tokens": tokens, "targets": targets.masked_fill(before, IGNORE), "padding": padding, "wanted": wanted}


def common_start(sequences: Sequence[Any]) -> int:
    """The number of items at the beginning that all of these texts or lists share."""
    first, last = min(sequences), max(sequences)  # all others sort between these two
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


Span = tuple[int, int]  # first token, token after the last
Cut = Callable[
    ["Document", int, np.random.Generator], "Document"
]  # (document, room in tokens, generator) -> the part to keep
Draw = Callable[["Document", np.random.Generator], list[Span]]  # the spans to hide


@dataclass(frozen=True)
class Document:
    """Tokens, the spans of phrases worth hiding, and how many tokens at the beginning name the topic."""

    tokens: list[int]
    phrases: list[Span]
    title: int = 0

    def part(self, start: int, length: int) -> Document:
        end = start + length
        inside = [(first - start, last - start) for first, last in self.phrases if first >= start and last <= end]
        return Document(self.tokens[start:end], inside, min(self.title, length) if start == 0 else 0)


def anywhere(document: Document, room: int, generator: np.random.Generator) -> Document:
    """As many tokens as fit, from a random position."""
    return document.part(int(generator.integers(0, max(1, len(document.tokens) - room + 1))), room)


def beginning(document: Document, room: int, generator: np.random.Generator) -> Document:
    """As many tokens as fit, from the start, where a document names its topic."""
    return document.part(0, room)


def random_beginning(document: Document, room: int, generator: np.random.Generator) -> Document:
    """The first 4 tokens or more, up to 7/8 of the context (`room` is 2 less than the context)."""
    return document.part(0, int(generator.integers(4, max(5, (room + 2) * 7 // 8 + 1))))


def nothing(document: Document, generator: np.random.Generator) -> list[Span]:
    return []


def one_span(document: Document, generator: np.random.Generator) -> list[Span]:
    """A span of uniform length up to half of the document, a quarter of it on average, at a random position."""
    size = len(document.tokens)
    length = int(generator.integers(1, max(2, size // 2 + 1)))
    start = int(generator.integers(0, max(1, size - length + 1)))
    return [(start, start + length)]


def salient_phrases(document: Document, generator: np.random.Generator) -> list[Span]:
    """All phrases worth hiding; one random span if there are none."""
    return document.phrases or one_span(document, generator)


@dataclass(frozen=True)
class Corruption:
    """How a document becomes an example: which part is kept and which spans of it are hidden."""

    cut: Cut
    draw: Draw
    most: Callable[[Document], int]  # the largest number of hidden spans

    def room(self, document: Document, context: int) -> int:
        """Tokens of the document that fit besides the MASK tokens; the input is one shorter than the sequence."""
        return max(1, context - 2 * self.most(document))

    def length(self, document: Document, context: int) -> int:
        """The longest input: the kept tokens, one MASK in place of each span and one before it."""
        return min(len(document.tokens), self.room(document, context)) + 2 * self.most(document)

    def example(self, document: Document, context: int, mask: int, generator: np.random.Generator) -> TokenSequence:
        kept = self.cut(document, self.room(document, context), generator)
        text: list[int] = []
        hidden: list[int] = []
        at, title = 0, kept.title
        for start, end in self.draw(kept, generator):
            title = min(title, start)  # the visible part of it
            text += [*kept.tokens[at:start], mask]
            hidden += [mask, *kept.tokens[start:end]]
            at = end
        text += kept.tokens[at:]
        return TokenSequence([*text, *hidden, mask], given=len(text) + 1 if hidden else 0, title=title)


CORRUPTIONS = {
    "causal": Corruption(anywhere, nothing, most=lambda document: 0),
    "span": Corruption(anywhere, one_span, most=lambda document: 1),
    "truncated": Corruption(random_beginning, one_span, most=lambda document: 1),
    "salient": Corruption(beginning, salient_phrases, most=lambda document: max(1, len(document.phrases))),
}


class CorpusExamples:
    """One example per document and epoch; with several objectives, each example draws one of them.

    With `spans_only` the loss is on the hidden spans (with `titles`, also on the title that begins a document),
    otherwise on every token.
    """

    def __init__(
        self,
        documents: Sequence[list[int]],
        vocabulary: Vocabulary,
        context: int,
        objectives: Sequence[str],
        seed: int,
        spans_only: bool = False,
        titles: bool = False,
    ) -> None:
        self.corruptions = [CORRUPTIONS[name] for name in objectives]
        salient = "salient" in objectives
        self.documents = [
            Document(
                tokens,
                find_phrases(vocabulary, tokens) if salient else [],
                title_length(vocabulary, tokens) if titles else 0,
            )
            for tokens in documents
        ]
        self.mask, self.context, self.seed, self.spans_only = vocabulary.mask, context, seed, spans_only
        self.lengths = [max(kind.length(document, context) for kind in self.corruptions) for document in self.documents]
        self.longer = sum(
            all(len(document.tokens) > kind.room(document, context) for kind in self.corruptions)
            for document in self.documents
        )

    def example(self, index: int, epoch: int) -> TokenSequence:
        generator = np.random.default_rng([self.seed, epoch, index])
        corruption = self.corruptions[0]
        if len(self.corruptions) > 1:
            corruption = self.corruptions[int(generator.integers(len(self.corruptions)))]
        sequence = corruption.example(self.documents[index], self.context, self.mask, generator)
        return sequence if self.spans_only else TokenSequence(sequence.tokens)
