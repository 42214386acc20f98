"""An objective turns a model and a batch into a loss, averaged over the batch's targets.

`weight` is the number of targets of a batch, so gradients summed over several batches weigh every target equally.
Joint training is a weighted sum of two objectives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.base.errors import UserError, unknown
from attnlab.data.batching import IGNORE, Batch, Batches

Evaluate = Callable[[nn.Module], dict[str, float]]
"""Measures a model on dev."""


class Objective(Protocol):
    def weight(self, batch: Batch) -> float:
        """The number of targets in the batch."""
        ...

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over the batch's targets."""
        ...


def parts_of(objective: Objective) -> list[tuple[float, Objective]]:
    """The objectives whose weighted sum this one is, each averaged over its own targets."""
    return objective.parts() if isinstance(objective, Joint) else [(1.0, objective)]


class NextToken:
    """Cross entropy of the next token; targets (B, T) equal to IGNORE do not count.

    Causal language modelling, span corruption and question answering are all this objective: they
    differ in the targets of the data, not in the loss. Logits are computed only where there is a target: with a large
    vocabulary and short answers that is a small part of the work.
    """

    def weight(self, batch: Batch) -> float:
        return float((batch.inputs["targets"] != IGNORE).sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        tokens, targets = batch.inputs["tokens"], batch.inputs["targets"]
        wanted = batch.inputs.get("wanted")  # (B, T), from data with few targets
        if wanted is None:
            return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
        return F.cross_entropy(model(tokens, wanted=wanted), targets[wanted])  # (N, V), (N,)


class Classification:
    """Cross entropy of one label per example; the model takes the batch's other tensors by name.

    It returns logits (B, classes), or an object with them as `logits`. With class weights w the loss is
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
        output = model(**inputs)
        logits = getattr(output, "logits", output)
        weights = None if self.class_weights is None else self.class_weights.to(logits)
        return F.cross_entropy(logits, batch.inputs["labels"], weights)


class MaskedWords:
    """The loss of a model that scores masked positions only: it gets the targets (B, T), IGNORE where there is none.

    `keyword` is the name of the targets in the model's call, which differs for a model with a second head.
    """

    def __init__(self, keyword: str = "labels") -> None:
        self.keyword = keyword

    def weight(self, batch: Batch) -> float:
        return float((batch.inputs["labels"] != IGNORE).sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        inputs = {name: tensor for name, tensor in batch.inputs.items() if name != "labels"}
        return model(**inputs, **{self.keyword: batch.inputs["labels"]}).loss


class Joint:
    """L = L_main + w·L_side, each on its own part of the batch; w may change during the run.

    The side's tensors are those whose names begin with `prefix`. `progress` rises from 0 at the first step to 1
    at the last: see JointProgress.
    """

    def __init__(
        self, main: Objective, side: Objective, weight: float, schedule: str = "constant", prefix: str = "masked_"
    ) -> None:
        if schedule not in WEIGHTS:
            raise UserError(unknown("schedule of the weight", schedule, WEIGHTS))
        if weight < 0:
            raise UserError(f"the weight of the second loss is {weight}: give 0 or more.")
        self.main, self.side, self.peak, self.schedule, self.prefix = main, side, weight, schedule, prefix
        self.progress = 0.0

    @property
    def side_weight(self) -> float:
        return self.peak * WEIGHTS[self.schedule](self.progress)

    def parts(self) -> list[tuple[float, Objective]]:
        main = (1.0, PartObjective(self.main, self.prefix, inside=False))
        if self.side_weight == 0.0:
            return [main]  # no work for an objective of weight 0
        return [main, (self.side_weight, PartObjective(self.side, self.prefix, inside=True))]

    def weight(self, batch: Batch) -> float:
        return PartObjective(self.main, self.prefix, inside=False).weight(batch)

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        (_, main), *others = self.parts()
        loss = main(model, batch)
        for weight, part in others:
            loss = loss + weight * part(model, batch)
        return loss


class PartObjective:
    """An objective on some of a batch's tensors: those whose names begin with `prefix`, or the others."""

    def __init__(self, objective: Objective, prefix: str, inside: bool) -> None:
        self.objective, self.prefix, self.inside = objective, prefix, inside

    def weight(self, batch: Batch) -> float:
        return self.objective.weight(self._of(batch))

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.objective(model, self._of(batch))

    def _of(self, batch: Batch) -> Batch:
        inputs = {
            name.removeprefix(self.prefix): tensor
            for name, tensor in batch.inputs.items()
            if name.startswith(self.prefix) == self.inside
        }
        return replace(batch, inputs=inputs)


WEIGHTS: dict[str, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "up": lambda progress: progress,
    "down": lambda progress: 1.0 - progress,
}
"""The weight of the second loss as a share of its peak."""


class StepLoss(nn.Module):
    """Σ_k c_k·s_k·L_k for the parts k of an objective: c_k is the part's weight, s_k this batch's share of the
    targets of the whole step, L_k the mean loss over this batch's."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def weights(self, batch: Batch) -> list[float]:
        """The number of targets in the batch, for each part."""
        return [part.weight(batch) if batch.examples else 0.0 for _, part in parts_of(self.objective)]

    def forward(self, batch: Batch, shares: Sequence[float]) -> Tensor:
        first, *others = [
            self._mean(part, batch, share) * (weight * share)
            for (weight, part), share in zip(parts_of(self.objective), shares, strict=True)
        ]
        return sum(others, first)

    def _mean(self, part: Objective, batch: Batch, share: float) -> Tensor:
        """The mean loss; without targets in this process it is 0/0, which is replaced by 0."""
        loss = part(self.model, batch)
        return loss if share else loss.nan_to_num()


def mean_loss(batches: Batches, device: str, objective: Objective | None = None) -> Evaluate:
    """Evaluate an objective (default: the next token) over a whole set, with equal weight for every target."""
    objective = objective or NextToken()

    def evaluate(model: nn.Module) -> dict[str, float]:
        def measured(batch: Batch) -> tuple[float, float]:
            return objective.weight(batch), objective(model, batch.to(torch.device(device))).item()

        parts = batches.each(measured)
        return {"loss": sum(weight * loss for weight, loss in parts) / max(1.0, sum(weight for weight, _ in parts))}

    return evaluate
