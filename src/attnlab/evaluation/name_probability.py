"""How probable a model finds a name: whether it has read about the person.

The confidence in an answer does not show it: a model is often more confident about people who do not exist. But a
model that was trained to predict the names it read gives these a high probability, token by token after the first,
and a low one to new combinations of the same words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.generate import pad
from attnlab.models.gpt import GPT

NAMES_AT_ONCE = 256
MEANING = (
    "the model's probability of the name at the beginning of a document: the geometric mean over its tokens after "
    "the first, given those before"
)

NameProbabilities = Callable[[Sequence[str]], list[float | None]]
"""Names in, their probabilities out; None for a name of one token, which nothing predicts."""


@torch.no_grad()
def name_probabilities(model: GPT, vocabulary: Vocabulary, names: Sequence[str]) -> list[float | None]:
    """exp(mean of log P(token | tokens before)) over the tokens of each name after the first."""
    device = next(model.parameters()).device
    model.eval()
    rows = [vocabulary.encode(name)[: model.shape.context] for name in names]
    probabilities: list[float | None] = [None] * len(rows)
    order = sorted((n for n, row in enumerate(rows) if len(row) > 1), key=lambda n: len(rows[n]))
    for start in range(0, len(order), NAMES_AT_ONCE):
        part = order[start : start + NAMES_AT_ONCE]
        tokens, real = pad([rows[n] for n in part], device)  # (B, T)
        logs = model(tokens[:, :-1], real[:, :-1]).log_softmax(-1)  # (B, T - 1, V)
        chosen = logs.gather(-1, tokens[:, 1:, None])[..., 0].masked_fill(~real[:, 1:], 0.0)
        for n, total in zip(part, chosen.sum(1).tolist(), strict=True):
            probabilities[n] = math.exp(total / (len(rows[n]) - 1))
    return probabilities
