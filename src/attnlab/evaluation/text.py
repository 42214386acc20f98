"""The loss of a language model on a text: perplexity, bits per character, token by token.

A token is predicted from the tokens before it, at most `context` of them. The text is read in windows that end `stride`
tokens apart; of each window the last `stride` predictions count:

    stride = context      disjoint blocks, as in training: the first token of a block has one token before it
    stride = context / 2  the default: at least half the context, except at the beginning of a text
    stride = 1            prefix by prefix: always the whole context, and no later token in the input
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import Vocabulary, split_words
from attnlab.models.generate import pad
from attnlab.models.gpt import GPT
from attnlab.models.sampling import window_of
from attnlab.stats.intervals import ClusterMean

AT_ONCE = 8192  # tokens per pass
CHECKED = 64  # tokens on which the model is asked for the future
LEAK = 0.02
"""Nats by which prefixes must cost more than one pass before that alone is called seeing the future: 16 bits and
other kernels for other lengths make a little difference to everybody."""


class Window(NamedTuple):
    """A part of a document: the tokens from `start` to `end`, of which those from `first` on are scored."""

    document: int
    start: int
    first: int
    end: int


@dataclass(frozen=True)
class TextScores:
    """The loss of every token of some documents but the first of each, in order."""

    vocabulary: Vocabulary
    documents: list[list[int]]
    characters: int
    """Of the text that these tokens are, the first of each document excluded; `utf8_bytes` likewise."""
    utf8_bytes: int
    context: int
    stride: int
    losses: list[list[float]]
    """By document: of its second token, its third, ..."""
    future: float
    """By how much the loss per token rises when the future is hidden: 0 for a causal model, up to rounding."""

    @property
    def tokens(self) -> int:
        return sum(map(len, self.losses))

    @property
    def loss(self) -> float:
        """Nats per token."""
        return self.mean.mean

    @property
    def mean(self) -> ClusterMean:
        """With an interval over documents; for a single one, over its blocks of `context` tokens."""
        units = self.losses
        if len(units) == 1:
            units = [units[0][start : start + self.context] for start in range(0, len(units[0]), self.context)]
        return ClusterMean(tuple(math.fsum(unit) for unit in units), tuple(len(unit) for unit in units))

    @property
    def unknown_share(self) -> float:
        unknown = sum(document[1:].count(self.vocabulary.unknown) for document in self.documents)
        return unknown / self.tokens

    @property
    def sees_future(self) -> bool:
        return self.future > LEAK

    def contexts(self) -> Iterator[list[int]]:
        """By document, how many tokens each prediction was made from."""
        for document in self.documents:
            yield [position - _start(position, self.context, self.stride) for position in range(1, len(document))]

    def summary(self) -> dict[str, Any]:
        """All numbers, for a file or a script."""
        mean, given = self.mean, [n for part in self.contexts() for n in part]
        bits = math.fsum(mean.totals) / math.log(2)
        interval = mean.interval
        return {
            "loss": mean.mean,
            "loss_interval": interval,
            "perplexity": _exp(mean.mean),
            "perplexity_interval": None if interval is None else [_exp(end) for end in interval],
            "bits_per_character": bits / self.characters,
            "bits_per_byte": bits / self.utf8_bytes,
            "tokens": self.tokens,
            "documents": len(self.documents),
            "unknown_share": self.unknown_share,
            "units": len(mean.totals),
            "unit": "documents" if len(self.documents) > 1 else f"blocks of {self.context} tokens",
            "context": self.context,
            "stride": self.stride,
            "least_context": min(given),
            "mean_context": sum(given) / len(given),
            "future_worth": self.future,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per predicted token."""
        for number, (document, losses, given) in enumerate(
            zip(self.documents, self.losses, self.contexts(), strict=True), start=1
        ):
            for position, (token, loss, before) in enumerate(zip(document[1:], losses, given, strict=True), start=2):
                yield {
                    "document": number,
                    "position": position,
                    "token": self.vocabulary.tokens[token],
                    "loss": round(loss, 6),
                    "probability": round(math.exp(-loss), 6),
                    "context": before,
                }


def evaluate_text(
    model: GPT, vocabulary: Vocabulary, documents: Sequence[str], context: int | None = None, stride: int | None = None
) -> TextScores:
    """The loss on documents, each read on its own; a text read as one stream is one document.

    `context` is the most tokens to predict from (default: those the model was built for), `stride` see above.
    """
    context = window_of(model, context)
    stride = max(1, context // 2) if stride is None else stride
    if not 1 <= stride <= context:
        raise UserError(f"stride is {stride}: give a number from 1 to the context of {context}.")
    pairs = [(text, ids) for text in documents if len(ids := vocabulary.encode(text)) > 1]
    if not pairs:
        raise UserError("the text has no token to predict: a document needs at least 2 tokens.")
    encoded = [ids for _, ids in pairs]
    rests = [_without_first(vocabulary, text) for text, _ in pairs]
    return TextScores(
        vocabulary,
        encoded,
        sum(map(len, rests)),
        sum(len(rest.encode("utf-8", "surrogatepass")) for rest in rests),
        context,
        stride,
        document_losses(model, encoded, context, stride),
        future_worth(model, max(encoded, key=len)[: min(context, CHECKED) + 1]),
    )


def document_losses(model: GPT, documents: Sequence[Sequence[int]], context: int, stride: int) -> list[list[float]]:
    """For each document the losses of its tokens from the second on."""
    every = [window for n, document in enumerate(documents) for window in windows(n, len(document), context, stride)]
    every.sort(key=lambda window: window.end - window.start)  # stable: the windows of a document stay in order
    losses = [[math.nan] * (len(document) - 1) for document in documents]
    while every:
        rows = max(1, AT_ONCE // (every[-1].end - every[-1].start))
        every, part = every[:-rows], every[-rows:]
        scored = window_losses(model, documents, part)
        for window in part:
            losses[window.document][window.first - 1 : window.end - 1] = islice(scored, window.end - window.first)
    return losses


def windows(document: int, length: int, context: int, stride: int) -> Iterator[Window]:
    """Windows of at most `context` tokens and the token after them; all tokens but the first are scored once."""
    for first in range(1, length, stride):
        yield Window(document, _start(first, context, stride), first, min(first + stride, length))


def _start(position: int, context: int, stride: int) -> int:
    """Where the window begins in which the token at this position is scored: windows end at multiples of the stride."""
    return max(0, (position - 1) // stride * stride + stride - context)


@torch.no_grad()
def window_losses(model: GPT, documents: Sequence[Sequence[int]], part: Sequence[Window]) -> Iterator[float]:
    """The losses of the scored tokens of these windows, one after the other, in one pass."""
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    tokens, real = pad([documents[window.document][window.start : window.end] for window in part], device)  # (B, T + 1)
    inputs, targets, is_target = tokens[:, :-1], tokens[:, 1:], real[:, 1:]  # the last token is only a target
    first = torch.tensor([window.first - window.start for window in part], device=device)[:, None]
    wanted = is_target & (torch.arange(1, tokens.shape[1], device=device) >= first)  # (B, T)
    logits = model(inputs, None if bool(is_target.all()) else is_target, wanted=wanted)  # (N, V)
    losses = F.cross_entropy(logits.float(), targets[wanted], reduction="none")
    model.train(was_training)
    return iter(losses.tolist())


def future_worth(model: GPT, document: list[int]) -> float:
    """The rise of the loss per token when later tokens are hidden: one pass against one per prefix."""
    length = len(document) - 1
    usual, honest = (math.fsum(document_losses(model, [document], length, stride)[0]) for stride in (length, 1))
    return (honest - usual) / length


def _without_first(vocabulary: Vocabulary, text: str) -> str:
    """The text after its first token."""
    first = text[0] if vocabulary.level == "characters" else split_words(text)[0]
    return text[text.index(first) + len(first) :]


def _exp(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf
