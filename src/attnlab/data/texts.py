"""Labelled texts for a model of the hub: tokenized once, with the special tokens of its own family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnlab.data.joint import EncodedExamples
from attnlab.data.tasks.labelled import Example
from attnlab.data.wordpiece import Encoded
from attnlab.errors import UserError


def text_examples(examples: Sequence[Example], tokenizer: Any, longest: int, where: str = "") -> EncodedExamples:
    """Tokens and labels. Of a pair that is too long the second text is cut, never the first."""
    rows = encode(tokenizer, [e.text for e in examples], [e.pair for e in examples], longest, where)
    segments = "token_type_ids" in tokenizer.model_input_names and any(e.pair is not None for e in examples[:1])
    return EncodedExamples(rows, [example.label for example in examples], tokenizer.pad_token_id, segments)


def encode(
    tokenizer: Any, texts: Sequence[str], pairs: Sequence[str | None], longest: int, where: str = ""
) -> list[Encoded]:
    """Every text, or pair of texts, in at most `longest` tokens."""
    paired = bool(pairs) and pairs[0] is not None
    both = (list(texts), list(pairs)) if paired else (list(texts),)
    found = tokenizer(*both, truncation=False, verbose=False, return_token_type_ids=True, return_attention_mask=False)
    ids, types = found["input_ids"], found["token_type_ids"]
    long = [n for n, row in enumerate(ids) if len(row) > longest]
    if long and paired:
        _firsts_must_fit(tokenizer, texts, long, longest, where)
    if long:
        cut = tokenizer(
            *[[side[n] for n in long] for side in both], truncation="only_second" if paired else True,
            max_length=longest, return_token_type_ids=True, return_attention_mask=False,
        )  # fmt: skip
        for n, row, kinds in zip(long, cut["input_ids"], cut["token_type_ids"], strict=True):
            ids[n], types[n] = row, kinds
    shortened = set(long)
    return [Encoded(row, kinds, n in shortened) for n, (row, kinds) in enumerate(zip(ids, types, strict=True))]


def _firsts_must_fit(tokenizer: Any, texts: Sequence[str], long: Sequence[int], longest: int, where: str) -> None:
    """A question is never cut: one that leaves no room for its passage is an error."""
    alone = tokenizer([texts[n] for n in long], add_special_tokens=False, verbose=False)["input_ids"]
    room = longest - tokenizer.num_special_tokens_to_add(pair=True)
    for n, row in zip(long, alone, strict=True):
        if len(row) >= room:
            raise UserError(
                f"{where}example {n + 1}: its first text alone has {len(row)} tokens, and with the special ones "
                f"{longest} is all there is: raise --max-tokens or shorten it (only the second text is ever cut)."
            )


class FeatureExamples:
    """One example a text whose features were computed once: the body is frozen, so they never change."""

    def __init__(self, features: Tensor, labels: Sequence[int]) -> None:
        self.features, self.labels = features, torch.tensor(labels)
        self.lengths = [1] * len(labels)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        chosen = torch.as_tensor(indices)
        return {"features": self.features[chosen], "labels": self.labels[chosen]}
