"""A corpus as training examples for a causal model: plain next-token prediction, or hidden spans to predict.

    causal     document MASK
    span       prefix MASK suffix MASK span MASK
    truncated  the same after a cut at a random length
    salient    text MASK text MASK text MASK phrase MASK phrase MASK

In `span`, one span is cut out anywhere (after T5, with a single span); `truncated` is the documents' form of it; in
`salient`, phrases that one must know are hidden: names, places, numbers. The model predicts what is missing, which
is the form a question has later. The draw for an example depends only on the seed, the epoch and the example's index,
so training can resume anywhere in an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.data.sequences import TokenSequence
from attnlab.data.text.salient import find_phrases
from attnlab.data.tokenizers.vocabulary import Vocabulary

Span = tuple[int, int]  # first token, token after the last
Cut = Callable[
    ["Document", int, np.random.Generator], "Document"
]  # (document, room in tokens, generator) -> the part to keep
Draw = Callable[["Document", np.random.Generator], list[Span]]  # the spans to hide


@dataclass(frozen=True)
class Document:
    """Tokens, and the spans of phrases worth hiding."""

    tokens: list[int]
    phrases: list[Span]

    def part(self, start: int, length: int) -> Document:
        end = start + length
        inside = [(first - start, last - start) for first, last in self.phrases if first >= start and last <= end]
        return Document(self.tokens[start:end], inside)


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
        at = 0
        for start, end in self.draw(kept, generator):
            text += [*kept.tokens[at:start], mask]
            hidden += [mask, *kept.tokens[start:end]]
            at = end
        text += kept.tokens[at:]
        return TokenSequence([*text, *hidden, mask], given=len(text) + 1 if hidden else 0)


CORRUPTIONS = {
    "causal": Corruption(anywhere, nothing, most=lambda document: 0),
    "span": Corruption(anywhere, one_span, most=lambda document: 1),
    "truncated": Corruption(random_beginning, one_span, most=lambda document: 1),
    "salient": Corruption(beginning, salient_phrases, most=lambda document: max(1, len(document.phrases))),
}


class CorpusExamples:
    """One example per document and epoch; with several objectives, each example draws one of them.

    With `spans_only` the loss is on the hidden spans, otherwise on every token.
    """

    def __init__(
        self,
        documents: Sequence[list[int]],
        vocabulary: Vocabulary,
        context: int,
        objectives: Sequence[str],
        seed: int,
        spans_only: bool = False,
    ) -> None:
        self.corruptions = [CORRUPTIONS[name] for name in objectives]
        salient = "salient" in objectives
        self.documents = [Document(tokens, find_phrases(vocabulary, tokens) if salient else []) for tokens in documents]
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
