"""An objective turns a model and a batch into a loss, averaged over the batch's targets.

`weight` says how many targets a batch has, so that gradients added up over several batches weigh every
target alike. Joint training is a weighted sum of two objectives, nothing special.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.data.batching import Batch
from attnlab.errors import UserError, unknown

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
    """Cross entropy of one label an example; the model takes the batch's other tensors by name.

    It gives back logits (B, classes), or something that has them as `logits`. With class weights w the loss is
    Σ w_y·loss / Σ w_y.
    """

    def __init__(self, class_weights: Sequence[float] | None = None) -> None:
        self.class_weights = None if class_weights is None else torch.tensor(class_weights)

    def weight(self, batch: Batch) -> float:
        if self.class_weights is None:
            return float(batch.examples)
        return float(self.class_weights[batch.inputs["labels"].cpu()].sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        inputs = {name: tensor for name, tensor in batch.inputs.items() if name != "labels"}
        found = model(**inputs)
        logits = getattr(found, "logits", found)
        weights = None if self.class_weights is None else self.class_weights.to(logits)
        return F.cross_entropy(logits, batch.inputs["labels"], weights)


class MaskedWords:
    """The loss of a model that scores masked places only: it is given the targets (B, T), IGNORE where none is.

    `keyword` is the name of the targets in the model's call; a model with a second head has another one.
    """

    def __init__(self, keyword: str = "labels") -> None:
        self.keyword = keyword

    def weight(self, batch: Batch) -> float:
        return float((batch.inputs["labels"] != IGNORE).sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        inputs = {name: tensor for name, tensor in batch.inputs.items() if name != "labels"}
        return model(**inputs, **{self.keyword: batch.inputs["labels"]}).loss


class Joint:
    """L = L_main + w·L_side, each on its own part of the batch; w may change as the run goes on.

    The side's tensors are those whose names begin with `prefix`. Batches whose gradients are added up are weighed by
    the targets of the main objective. `progress` goes from 0 at the first step to 1 at the last: see JointProgress.
    """

    def __init__(
        self, main: Objective, side: Objective, weight: float, schedule: str = "constant", prefix: str = "masked_"
    ) -> None:
        if schedule not in WEIGHTS:
            raise UserError(unknown("schedule of the weight", schedule, WEIGHTS))
        if weight < 0:
            raise UserError(f"the weight of the second loss is {weight}: it cannot be negative.")
        self.main, self.side, self.peak, self.schedule, self.prefix = main, side, weight, schedule, prefix
        self.progress = 0.0

    @property
    def side_weight(self) -> float:
        return self.peak * WEIGHTS[self.schedule](self.progress)

    def weight(self, batch: Batch) -> float:
        return self.main.weight(self._part(batch, main=True))

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        loss = self.main(model, self._part(batch, main=True))
        if self.side_weight == 0.0:
            return loss  # and no work for what does not count
        return loss + self.side_weight * self.side(model, self._part(batch, main=False))

    def _part(self, batch: Batch, main: bool) -> Batch:
        inputs = {
            name.removeprefix(self.prefix): tensor
            for name, tensor in batch.inputs.items()
            if name.startswith(self.prefix) != main
        }
        return replace(batch, inputs=inputs)


WEIGHTS: dict[str, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "up": lambda progress: progress,
    "down": lambda progress: 1.0 - progress,
}
"""The weight of the second loss as a share of its peak."""
