"""An objective turns a model and a batch into a loss, averaged over the batch's targets.

`weight` says how many targets a batch has, so that gradients added up over several batches weigh every
target alike. Joint training is a weighted sum of two objectives, nothing special.
"""

from __future__ import annotations

from typing import Protocol

import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.data.batching import Batch

IGNORE = -100  # a target that does not count


class Objective(Protocol):
    def weight(self, batch: Batch) -> float:
        """How many targets the batch has."""
        ...

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over the batch's targets."""
        ...


class NextToken:
    """Cross entropy of the next token; targets (B, T) that are IGNORE do not count.

    Causal language modelling, span corruption and question answering are all this objective: they
    differ in what the data asks for, not in how the loss is computed. Logits are computed where there is a
    target: with a large vocabulary and short answers that is a small part of the work.
    """

    def weight(self, batch: Batch) -> float:
        return float((batch.inputs["targets"] != IGNORE).sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        tokens, targets = batch.inputs["tokens"], batch.inputs["targets"]
        wanted = batch.inputs.get("wanted")  # (B, T), where data with few targets says so
        if wanted is None:
            return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
        return F.cross_entropy(model(tokens, wanted=wanted), targets[wanted])  # (N, V), (N,)


class Classification:
    """Cross entropy of one label an example; the model takes the batch's other tensors by name."""

    def weight(self, batch: Batch) -> float:
        return float(batch.examples)

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        inputs = {name: tensor for name, tensor in batch.inputs.items() if name != "labels"}
        return F.cross_entropy(model(**inputs), batch.inputs["labels"])
