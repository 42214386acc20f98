"""A pretrained body with a new head: text in, one vector per text, logits out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.data.batching import Batch, Batches, BatchPlan, Examples

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": F.relu, "gelu": F.gelu}
HEAD_STD = 0.02  # new weights of a head, as in BERT
PREDICTION_BATCH = 64


class Head(nn.Module):
    """Vector to logits: dropout, linear; with an activation, a dense layer before that."""

    def __init__(self, width: int, classes: int, dropout: float, activation: str | None = None) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation] if activation else None
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, width) if activation else None
        self.out = nn.Linear(width, classes)
        for layer in (self.dense, self.out):
            if layer is not None:
                nn.init.normal_(layer.weight, std=HEAD_STD)
                nn.init.zeros_(layer.bias)

    def forward(self, features: Tensor) -> Tensor:
        if self.dense is not None and self.activation is not None:
            features = self.activation(self.dense(self.dropout(features)))
        return self.out(self.dropout(features))


def pool(hidden: Tensor, mask: Tensor, how: str) -> Tensor:
    """(B, T, C) to (B, C): the first vector, the last that is not padding, or the mean of those that are not."""
    if how == "first":
        return hidden[:, 0]
    if how == "last":
        return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]
    real = mask[:, :, None].to(hidden.dtype)
    return (hidden * real).sum(1) / real.sum(1)


class Classifier(nn.Module):
    """body, one vector per text, head."""

    base_weights: frozenset[str] = frozenset()
    """Names of the frozen weights: they are those of the base model and are not saved with a run."""
    new_pooler = False
    """Whether the body's pooler was missing from its checkpoint: it is then trained with the head."""

    def __init__(self, body: nn.Module, head: Head, pooling: str) -> None:
        super().__init__()
        self.body, self.head, self.pooling = body, head, pooling

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, **more: Tensor) -> Tensor:
        """The last vectors of the text's tokens, (B, T, C)."""
        return self.body(input_ids=input_ids, attention_mask=attention_mask, **more).last_hidden_state

    def features(self, input_ids: Tensor, attention_mask: Tensor, **more: Tensor) -> Tensor:
        """One vector per text, (B, C)."""
        hidden = self.hidden(input_ids, attention_mask, **more)
        if self.pooling == "pooler":
            pooler: Any = self.body.pooler
            return pooler(hidden)  # tanh(W h_first + b)
        return pool(hidden, attention_mask, self.pooling)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **more: Tensor) -> Tensor:
        return self.head(self.features(input_ids, attention_mask, **more))


class HeadOnly(nn.Module):
    """The head alone, for features that were computed once."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.head = classifier.head

    def forward(self, features: Tensor) -> Tensor:
        return self.head(features)


class Subset:
    """Some of the examples of a set."""

    def __init__(self, examples: Examples, chosen: Sequence[int]) -> None:
        self.examples, self.chosen = examples, chosen
        self.lengths = [examples.lengths[n] for n in chosen]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        return self.examples.collate([self.chosen[n] for n in indices], epoch)


@torch.inference_mode()
def predict(model: nn.Module, data: Examples, device: str, batch: int = PREDICTION_BATCH) -> Tensor:
    """The logits (N, K), or whatever the model returns per text, in the order of `data`.

    Texts of similar length share a batch, so that little of it is padding.
    """
    was_training = model.training
    model.eval()

    def outputs(part: Batch) -> tuple[tuple[int, ...], Tensor]:
        inputs = {name: tensor for name, tensor in part.to(torch.device(device)).inputs.items() if name != "labels"}
        return part.indices, model(**inputs).float().cpu()

    parts = Batches(data, BatchPlan(data.lengths, batch)).each(outputs)
    model.train(was_training)
    by_length = torch.cat([part for _, part in parts])
    logits = torch.empty_like(by_length)
    logits[[index for indices, _ in parts for index in indices]] = by_length
    return logits.clone()  # outside of inference mode
