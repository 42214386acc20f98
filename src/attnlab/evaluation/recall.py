"""What a pretrained model has stored: does it complete the place in the documents it was trained on?

Stored is not the same as usable (Allen-Zhu and Li, 2023): a model can complete every sentence it was trained on
and still not answer a question about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from attnlab.data.batching import IGNORE
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT

BATCH = 256
MAX_DOCUMENTS = 2000  # enough to estimate a share to within two percentage points


@torch.no_grad()
def recall_accuracy(model: GPT, vocabulary: Vocabulary, documents: Sequence[tuple[str, str]]) -> float:
    """The share of documents whose place is predicted, token by token, from the text before it.

    `documents` are texts with a place that occurs in them; of more than MAX_DOCUMENTS an even sample is used.
    """
    step = max(1, -(-len(documents) // MAX_DOCUMENTS))
    rows = [_tokens_and_targets(vocabulary, text, place, model.shape.context) for text, place in documents[::step]]
    right = 0
    model.eval()
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        longest = max(len(tokens) for tokens, _ in part)
        tokens = torch.tensor([t + [vocabulary.pad] * (longest - len(t)) for t, _ in part])
        targets = torch.tensor([t + [IGNORE] * (longest - len(t)) for _, t in part])
        device = next(model.parameters()).device
        predicted = model(tokens.to(device)).argmax(-1).cpu()  # (B, T)
        right += int(((predicted == targets) | (targets == IGNORE)).all(dim=1).sum())
    return right / len(rows)


def _tokens_and_targets(vocabulary: Vocabulary, text: str, place: str, context: int) -> tuple[list[int], list[int]]:
    """A document's tokens, and as targets the next tokens that belong to the place."""
    match = re.search(rf"\b{re.escape(place)}\b", text)
    assert match is not None, f"{place} does not occur in {text!r}"
    tokens = vocabulary.encode(text)
    first, last = (len(vocabulary.encode(text[:end])) for end in (match.start(), match.end()))
    targets = [tokens[n + 1] if first <= n + 1 < last else IGNORE for n in range(len(tokens) - 1)]
    begin = max(0, last - 1 - context)  # skip the beginning of a document that is longer than the context
    return tokens[begin:-1][:context], targets[begin:][:context]
