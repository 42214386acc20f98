"""BERT with heads: a classifier, a head for masked words, and both on one body.

Targets that are IGNORE do not count. Scores are computed at masked positions only: the vocabulary is the widest
layer of the model, and most positions are not masked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.parts.weighting import Dropout
from attnlab.base.errors import UserError
from attnlab.data.batching import IGNORE
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.files import Pretrained
from attnlab.models.bert.model import BertModel, BertOutput, activation


@dataclass(frozen=True)
class ClassifierOutput:
    logits: Tensor  # (B, classes)
    loss: Tensor | None = None


@dataclass(frozen=True)
class MaskedOutput:
    """`logits` (B, T, V) are computed when they are read; the loss does not need them."""

    loss: Tensor | None
    _all_logits: Callable[[], Tensor] = field(repr=False)
    masked_logits: Tensor | None = None  # (M, V), at the masked positions in order, if labels were given

    @cached_property
    def logits(self) -> Tensor:
        return self._all_logits()


@dataclass(frozen=True)
class JointOutput:
    """Both heads on one text. `loss` is the sum of the losses whose targets are given."""

    logits: Tensor  # (B, classes)
    masked: MaskedOutput
    loss: Tensor | None


class ClassifierHead(nn.Linear):
    """Dropout and one linear layer on [CLS]."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config.width, len(config.labels))
        rate = config.dropout if config.classifier_dropout is None else config.classifier_dropout
        self.dropout = Dropout(rate)

    def forward(self, vectors: Tensor) -> Tensor:
        return super().forward(self.dropout(vectors))

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        classes = logits.shape[-1]
        if not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            wrong = int(labels.max()) if int(labels.max()) >= classes else int(labels.min())
            raise UserError(f"expected labels from 0 to {classes - 1}, the model's {classes} classes, got {wrong}.")
        return F.cross_entropy(logits, labels)


class MaskedHead(nn.Module):
    """Vectors (..., C) to one score per piece (..., V): dense, activation, norm, word embeddings."""

    def __init__(self, config: BertConfig, words: nn.Embedding) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.activation = activation(config.activation)
        self.norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.decoder = nn.Linear(config.width, config.vocabulary)
        if config.tied:
            self.decoder.weight = words.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.norm(self.activation(self.dense(x))))

    def output(self, vectors: Tensor, labels: Tensor | None) -> MaskedOutput:
        """For vectors (B, T, C) and the original pieces (B, T), IGNORE where nothing was masked."""
        loss = logits = None
        if labels is not None:
            chosen = labels != IGNORE  # (B, T)
            targets = labels[chosen]  # (M,)
            size = self.decoder.out_features
            if targets.numel() and not 0 <= int(targets.min()) <= int(targets.max()) < size:
                raise UserError(f"a masked piece's id is not among the model's {size}: use its own tokenizer.")
            logits = self(vectors[chosen])
            total = F.cross_entropy(logits, targets, reduction="sum")
            loss = total / max(1, targets.numel())  # 0 for a batch without a masked piece
        return MaskedOutput(loss, lambda: self(vectors), logits)


class BertForSequenceClassification(Pretrained):
    """The last vector of [CLS], dropout, a linear layer.

    With `classify_from="pooler"` the vector goes through the pooler first, as in `transformers`.
    """

    architectures = ("classifier",)

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, pooler=config.classify_from == "pooler")
        self.classifier = ClassifierHead(config)
        self.initialise()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> ClassifierOutput:
        """`labels` (B,) are class numbers."""
        body = self.bert(input_ids, attention_mask, token_type_ids)
        logits = self.classifier(_cls_vector(body))
        return ClassifierOutput(logits, None if labels is None else self.classifier.loss(logits, labels))


class BertForMaskedLanguageModel(Pretrained):
    """BERT with a head that predicts masked pieces."""

    architectures = ("BertForMaskedLM",)

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, pooler=False)
        self.masked = MaskedHead(config, self.bert.words)
        self.initialise()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> MaskedOutput:
        """`labels` (B, T) are the original pieces at masked positions, IGNORE elsewhere."""
        return self.masked.output(self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state, labels)


class BertForCLSMLM(Pretrained):
    """One body, two heads: a classifier and masked words, for training both at once."""

    architectures = ("classifier", "BertForMaskedLM")

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, pooler=config.classify_from == "pooler")
        self.classifier = ClassifierHead(config)
        self.masked = MaskedHead(config, self.bert.words)
        self.initialise()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        masked_labels: Tensor | None = None,
    ) -> JointOutput:
        """`labels` (B,) as for the classifier, `masked_labels` (B, T) as for masked words; either, both or none."""
        body = self.bert(input_ids, attention_mask, token_type_ids)
        logits = self.classifier(_cls_vector(body))
        masked = self.masked.output(body.last_hidden_state, masked_labels)
        losses = [] if labels is None else [self.classifier.loss(logits, labels)]
        losses += [] if masked.loss is None else [masked.loss]
        return JointOutput(logits, masked, sum(losses[1:], losses[0]) if losses else None)


def _cls_vector(body: BertOutput) -> Tensor:
    """(B, C): the pooler's output if there is a pooler, else the last vector of [CLS]."""
    return body.last_hidden_state[:, 0] if body.pooler_output is None else body.pooler_output
