"""A corpus as training examples for a causal model: plain next-token prediction, or something hidden to be told.

    causal     document MASK
    span       prefix MASK suffix MASK span MASK
    truncated  the same after a cut at a random length
    salient    text MASK text MASK text MASK phrase MASK phrase MASK

In `span`, one span is cut out anywhere (after T5, with a single span); `truncated` is the documents' form of it; in
`salient`, phrases that one must know are hidden: names, places, numbers. The model is asked to tell what is missing,
which is the form a question takes later. The draw for an example depends on the seed, the epoch and the example's
number only, so that an epoch can be entered anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.data.sequences import Asked
from attnlab.data.text.phrases import phrases
from attnlab.data.tokenizers.vocabulary import Vocabulary

Span = tuple[int, int]  # first token, token after the last
Cut = Callable[["Document", int, np.random.Generator], "Document"]  # what fits into so much room
Draw = Callable[["Document", np.random.Generator], list[Span]]  # the spans to hide


@dataclass(frozen=True)
class Document:
    """Tokens, and where the phrases worth hiding stand in them."""

    tokens: list[int]
    phrases: list[Span]

    def part(self, start: int, length: int) -> Document:
        end = start + length
        inside = [(first - start, last - start) for first, last in self.phrases if first >= start and last <= end]
        return Document(self.tokens[start:end], inside)


def anywhere(document: Document, room: int, generator: np.random.Generator) -> Document:
    """As much as fits, from a random place on."""
    return document.part(int(generator.integers(0, max(1, len(document.tokens) - room + 1))), room)


def beginning(document: Document, room: int, generator: np.random.Generator) -> Document:
    """As much as fits, from the start: what comes first says what a document is about."""
    return document.part(0, room)


def random_beginning(document: Document, room: int, generator: np.random.Generator) -> Document:
    """The first 4 tokens or more, up to 7/8 of the context (the room is 2 less than that)."""
    return document.part(0, int(generator.integers(4, max(5, (room + 2) * 7 // 8 + 1))))


def nothing(document: Document, generator: np.random.Generator) -> list[Span]:
    return []


def one_span(document: Document, generator: np.random.Generator) -> list[Span]:
    """A span of uniform length up to half of the document, a quarter of it on average, anywhere."""
    size = len(document.tokens)
    length = int(generator.integers(1, max(2, size // 2 + 1)))
    start = int(generator.integers(0, max(1, size - length + 1)))
    return [(start, start + length)]


def telling_phrases(document: Document, generator: np.random.Generator) -> list[Span]:
    """All phrases worth hiding; a span anywhere when there are none."""
    return document.phrases or one_span(document, generator)


@dataclass(frozen=True)
class Objective:
    """How a document becomes an example: what of it is kept, and which spans are hidden."""

    cut: Cut
    draw: Draw
    most: Callable[[Document], int]  # spans that may be hidden

    def room(self, document: Document, context: int) -> int:
        """The most tokens of the document that fit beside the marks; the input is one shorter than the sequence."""
        return max(1, context - 2 * self.most(document))

    def length(self, document: Document, context: int) -> int:
        """Of the input, at most: what is kept, a mark in place of each span and one before it."""
        return min(len(document.tokens), self.room(document, context)) + 2 * self.most(document)

    def example(self, document: Document, context: int, mask: int, generator: np.random.Generator) -> Asked:
        kept = self.cut(document, self.room(document, context), generator)
        text: list[int] = []
        hidden: list[int] = []
        at = 0
        for start, end in self.draw(kept, generator):
            text += [*kept.tokens[at:start], mask]
            hidden += [mask, *kept.tokens[start:end]]
            at = end
        text += kept.tokens[at:]
        return Asked([*text, *hidden, mask], given=len(text) + 1 if hidden else 0)


OBJECTIVES = {
    "causal": Objective(anywhere, nothing, most=lambda document: 0),
    "span": Objective(anywhere, one_span, most=lambda document: 1),
    "truncated": Objective(random_beginning, one_span, most=lambda document: 1),
    "salient": Objective(beginning, telling_phrases, most=lambda document: max(1, len(document.phrases))),
}


class CorpusExamples:
    """One example a document and epoch; of several objectives, each example follows one drawn at random.

    With `spans_only` the loss is on what was hidden, otherwise on every token.
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
        self.objectives = [OBJECTIVES[name] for name in objectives]
        salient = "salient" in objectives
        self.documents = [Document(each, phrases(vocabulary, each) if salient else []) for each in documents]
        self.mask, self.context, self.seed, self.spans_only = vocabulary.mask, context, seed, spans_only
        every = self.objectives
        self.lengths = [max(each.length(document, context) for each in every) for document in self.documents]
        self.longer = sum(
            all(len(document.tokens) > each.room(document, context) for each in every) for document in self.documents
        )

    def example(self, index: int, epoch: int) -> Asked:
        generator = np.random.default_rng([self.seed, epoch, index])
        objective = self.objectives[0]
        if len(self.objectives) > 1:
            objective = self.objectives[int(generator.integers(len(self.objectives)))]
        asked = objective.example(self.documents[index], self.context, self.mask, generator)
        return asked if self.spans_only else Asked(asked.tokens)
