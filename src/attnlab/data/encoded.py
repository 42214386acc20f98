"""Labelled texts as BERT reads them, alone or beside unlabelled ones with masked words."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from attnlab.base.errors import UserError
from attnlab.data.batching import Examples, pad
from attnlab.data.tasks.labelled import LabelledText
from attnlab.data.text.masking import MaskedRows
from attnlab.data.tokenizers.wordpiece import Encoded, WordPiece

MEASURED = 10_000  # texts whose lengths decide about the limit
SHARE_WHOLE, SHORTEST, STEP = 95, 16, 8  # percent; tokens
UNLIMITED = 2**30


class EncodedTexts(Examples, Protocol):
    """Texts in the form a classifier reads them, with their labels."""

    @property
    def labels(self) -> Sequence[int]: ...

    @property
    def rows(self) -> Sized:
        """One entry per text."""
        ...

    @property
    def cut(self) -> int:
        """How many were too long and were cut."""
        ...


class EncodedExamples:
    """One example per text or pair of texts: tokens, attention mask, segments if there are pairs, label."""

    def __init__(self, rows: Sequence[Encoded], labels: Sequence[int], pad_id: int, segments: bool) -> None:
        self.rows, self.labels, self.pad_id, self.segments = rows, list(labels), pad_id, segments
        self.cut = sum(row.cut for row in rows)
        self.lengths = [len(row.input_ids) for row in rows]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        rows = [self.rows[index] for index in indices]
        input_ids = pad([row.input_ids for row in rows], self.pad_id)  # (B, T)
        lengths = torch.tensor([self.lengths[index] for index in indices])
        inputs = {
            "input_ids": input_ids,
            "attention_mask": (torch.arange(input_ids.shape[1]) < lengths[:, None]).long(),
            "labels": torch.tensor([self.labels[index] for index in indices]),
        }
        if self.segments:
            inputs["token_type_ids"] = pad([row.token_type_ids for row in rows], 0)
        return inputs


class LabelledExamples(EncodedExamples):
    """Texts with labels, split into pieces by WordPiece."""

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[int],
        tokenizer: WordPiece,
        longest: int,
        pairs: Sequence[str] | None = None,
        truncation: str = "longest_first",
    ) -> None:
        seconds = pairs if pairs is not None else [None] * len(texts)
        rows = [
            tokenizer.encode(text, second, longest, truncation) for text, second in zip(texts, seconds, strict=True)
        ]
        super().__init__(rows, labels, tokenizer.pad_id, pairs is not None)


class JointExamples:
    """With each labelled text an unlabelled one, whose tensors are named masked_….

    Unlabelled texts are read in a random order that continues across epochs, so all are seen in turn however few
    labelled ones there are; which one goes with a labelled text depends only on the seed and the epoch.
    """

    def __init__(self, labelled: EncodedExamples, masked: MaskedRows, seed: int) -> None:
        self.labelled, self.masked, self.seed = labelled, masked, seed
        self.lengths = labelled.lengths

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        masked = self.masked.collate([self.partner(index, epoch) for index in indices], epoch)
        return self.labelled.collate(indices, epoch) | {f"masked_{name}": tensor for name, tensor in masked.items()}

    def partner(self, index: int, epoch: int) -> int:
        """The index of the unlabelled text that goes with a labelled one."""
        count = len(self.masked.lengths)
        round_, place = divmod(epoch * len(self.lengths) + index, count)
        return int(_order(self.seed, round_, count)[place])


@lru_cache(maxsize=2)
def _order(seed: int, round_: int, count: int) -> np.ndarray:
    return np.random.default_rng([seed, round_]).permutation(count)


def text_examples(examples: Sequence[LabelledText], tokenizer: Any, longest: int, where: str = "") -> EncodedExamples:
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
    encoded = tokenizer(*both, truncation=False, verbose=False, return_token_type_ids=True, return_attention_mask=False)
    ids, types = encoded["input_ids"], encoded["token_type_ids"]
    if [] in ids:
        raise UserError(
            f"{where}example {ids.index([]) + 1}: it is empty, and this model reads no empty text: fill it."
        )
    long = [n for n, row in enumerate(ids) if len(row) > longest]
    if long and paired:
        _check_first_texts(tokenizer, texts, long, longest, where)
    if long:
        cut = tokenizer(
            *[[side[n] for n in long] for side in both],
            truncation="only_second" if paired else True,
            max_length=longest,
            return_token_type_ids=True,
            return_attention_mask=False,
        )
        for n, row, kinds in zip(long, cut["input_ids"], cut["token_type_ids"], strict=True):
            ids[n], types[n] = row, kinds
    shortened = set(long)
    return [Encoded(row, kinds, n in shortened) for n, (row, kinds) in enumerate(zip(ids, types, strict=True))]


def cut_texts(examples: Sequence[LabelledText], tokenizer: Any, longest: int) -> tuple[list[LabelledText], int]:
    """The texts as far as `encode` reads them, and how many were cut."""
    if not tokenizer.is_fast:
        raise UserError("the tokenizer does not say where its tokens are in a text: leave out --encoder.")
    rows = encode(tokenizer, [e.text for e in examples], [e.pair for e in examples], longest)
    kept, cut = list(examples), [n for n, row in enumerate(rows) if row.cut]
    for n in cut:
        example = examples[n]
        shown = tokenizer(
            *([example.text] if example.pair is None else [example.text, example.pair]),
            truncation=True if example.pair is None else "only_second",
            max_length=longest,
            return_offsets_mapping=True,
        )
        places, side = shown.sequence_ids(), 0 if example.pair is None else 1
        end = max((end for (_, end), at in zip(shown["offset_mapping"], places, strict=True) if at == side), default=0)
        kept[n] = (
            example._replace(text=example.text[:end])
            if example.pair is None
            else example._replace(pair=example.pair[:end])
        )
    return kept, len(cut)


def usual_length(examples: Sequence[LabelledText], tokenizer: Any, longest: int) -> int:
    """A length limit that leaves 95% of the texts whole, up to the model's own; of a pair no first text is cut."""
    some = examples[:: -(-len(examples) // MEASURED)]
    paired = any(example.pair is not None for example in some[:1])
    rows = encode(tokenizer, [e.text for e in some], [e.pair for e in some], UNLIMITED)
    limit = float(np.percentile([len(row.input_ids) for row in rows], SHARE_WHOLE))
    if paired:
        alone = tokenizer([e.text for e in examples], add_special_tokens=False, verbose=False)["input_ids"]
        limit = max(limit, max(map(len, alone)) + tokenizer.num_special_tokens_to_add(pair=True) + 1)
    return min(longest, max(SHORTEST, STEP * math.ceil(limit / STEP)))


def _check_first_texts(tokenizer: Any, texts: Sequence[str], long: Sequence[int], longest: int, where: str) -> None:
    """Raise for a first text that leaves no room for the second: first texts are never cut."""
    alone = tokenizer([texts[n] for n in long], add_special_tokens=False, verbose=False)["input_ids"]
    room = longest - tokenizer.num_special_tokens_to_add(pair=True)
    for n, row in zip(long, alone, strict=True):
        if len(row) >= room:
            raise UserError(
                f"{where}example {n + 1}: its first text has {len(row)} tokens, which leaves no room for the second "
                f"within {longest}: raise --max-tokens or shorten it (only the second text is cut)."
            )


class FeatureExamples:
    """One example per text, by features computed once: the body is frozen, so they never change."""

    def __init__(self, features: Tensor, labels: Sequence[int]) -> None:
        self.features, self.labels = features, torch.tensor(labels)
        self.lengths = [1] * len(labels)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        chosen = torch.as_tensor(indices)
        return {"features": self.features[chosen], "labels": self.labels[chosen]}
