"""The three models of the assignment on the BERT of bert.py, in PyTorch alone.

BertForSequenceClassification   the last vector of [CLS], dropout, one linear layer to the classes (Problem 2)
BertForMaskedLanguageModel      a score for every piece of the vocabulary at every masked position (Problem 3)
BertForCLSMLM                   both on one body, L = L_cls + mlm_alpha · L_mlm (Problem 3)
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bert import ACTIVATIONS, BertConfig, BertModel, linear

IGNORE = -100  # the target of positions that are not masked


class Output(NamedTuple):
    logits: Tensor
    loss: Tensor | None


class JointOutput(NamedTuple):
    logits: Tensor
    loss: Tensor
    cls_loss: Tensor
    mlm_loss: Tensor


class BertForSequenceClassification(nn.Module):
    """Classify a text by the last hidden vector of [CLS], its first piece."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = linear(config, config.hidden_size, len(config.labels))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Output:
        """Logits (B, classes); the softmax is inside the loss, the mean cross-entropy with `labels` (B,)."""
        vectors = self.bert(input_ids, attention_mask, token_type_ids)  # (B, T, C)
        logits = self.classifier(self.dropout(vectors[:, 0]))  # (B, classes)
        return Output(logits, None if labels is None else F.cross_entropy(logits, labels))


class BertForMaskedLanguageModel(nn.Module):
    """Predict masked pieces: dense, activation, norm, then the dot product with every word embedding, and a bias."""

    def __init__(self, config: BertConfig, bert: BertModel | None = None) -> None:
        """With `bert`, the body of another model is shared."""
        super().__init__()
        self.bert = bert if bert is not None else BertModel(config)
        self.dense = linear(config, config.hidden_size, config.hidden_size)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, masked_labels: Tensor | None = None
    ) -> Output:
        """With `masked_labels` (B, T), the right piece at masked positions and IGNORE elsewhere: logits (M, V) of
        the M masked positions and their mean cross-entropy. Without: logits (B, T, V).

        The vocabulary is the widest layer and 85% of the positions have no target, so they are left out before it.
        """
        vectors = self.bert(input_ids, attention_mask)  # (B, T, C)
        if masked_labels is not None:
            chosen = masked_labels != IGNORE  # (B, T)
            vectors, targets = vectors[chosen], masked_labels[chosen]  # (M, C), (M,)
        vectors = self.norm(self.activation(self.dense(vectors)))
        logits = F.linear(vectors, self.bert.words.weight, self.bias)  # the output matrix is the word embeddings
        if masked_labels is None:
            return Output(logits, None)
        total = F.cross_entropy(logits, targets, reduction="sum")
        return Output(logits, total / max(1, len(targets)))  # 0, not NaN, for a batch without a masked piece


class BertForCLSMLM(nn.Module):
    """One body, two heads: the classifier reads labelled texts, the language model masked unlabelled ones."""

    def __init__(self, config: BertConfig, mlm_alpha: float = 1.0) -> None:
        super().__init__()
        self.classification = BertForSequenceClassification(config)
        self.language_model = BertForMaskedLanguageModel(config, self.classification.bert)
        self.mlm_alpha = mlm_alpha

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        labels: Tensor,
        masked_input_ids: Tensor,
        masked_attention_mask: Tensor | None,
        masked_labels: Tensor,
        token_type_ids: Tensor | None = None,
    ) -> JointOutput:
        """Both losses and L = L_cls + mlm_alpha · L_mlm, for one backward pass through the shared body."""
        classes = self.classification(input_ids, attention_mask, token_type_ids, labels)
        words = self.language_model(masked_input_ids, masked_attention_mask, masked_labels)
        loss = classes.loss + self.mlm_alpha * words.loss
        return JointOutput(classes.logits, loss, classes.loss, words.loss)
