"""What a pretrained model has stored: does it know the place in the very documents it has read?

Stored is not the same as at hand (Allen-Zhu and Li, 2023): a model can complete every sentence it was trained on
and still not answer a question about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from attnlab.data.batching import IGNORE
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT

AT_ONCE = 256
MOST = 2000  # documents: enough for a share to within two per cent


@torch.no_grad()
def recalled(model: GPT, vocabulary: Vocabulary, told: Sequence[tuple[str, str]]) -> float:
    """The share of documents whose place is predicted, token by token, from what stands before it.

    `told` are documents with the place in them; of many, an even sample is taken.
    """
    step = max(1, -(-len(told) // MOST))
    rows = [_marked(vocabulary, text, place, model.shape.context) for text, place in told[::step]]
    right = 0
    model.eval()
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        longest = max(len(tokens) for tokens, _ in part)
        tokens = torch.tensor([t + [vocabulary.pad] * (longest - len(t)) for t, _ in part])
        targets = torch.tensor([t + [IGNORE] * (longest - len(t)) for _, t in part])
        device = next(model.parameters()).device
        said = model(tokens.to(device)).argmax(-1).cpu()  # (B, T)
        right += int(((said == targets) | (targets == IGNORE)).all(dim=1).sum())
    return right / len(rows)


def _marked(vocabulary: Vocabulary, text: str, place: str, context: int) -> tuple[list[int], list[int]]:
    """A document's tokens and, where the next one belongs to the place, that one as the target."""
    found = re.search(rf"\b{re.escape(place)}\b", text)
    assert found is not None, f"{place} is not told in {text!r}"
    tokens = vocabulary.encode(text)
    first, last = (len(vocabulary.encode(text[:end])) for end in (found.start(), found.end()))
    targets = [tokens[n + 1] if first <= n + 1 < last else IGNORE for n in range(len(tokens) - 1)]
    begin = max(0, last - 1 - context)  # a document longer than the context is read from later on
    return tokens[begin:-1][:context], targets[begin:][:context]
