"""A model and its objective as one module: a step is one call of it, however often the objective asks the model.

Averaging gradients over processes (DDP) needs that: it looks at what one call has used and waits for just that.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from attnlab.data.batching import Batch
from attnlab.objectives import Objective, parts_of


class StepLoss(nn.Module):
    """Σ_k c_k·s_k·L_k for the parts k of an objective: c_k is the part's weight, s_k this batch's share of the
    targets of the whole step, L_k the mean loss over this batch's."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def weights(self, batch: Batch) -> list[float]:
        """How many targets the batch has, for each part."""
        return [part.weight(batch) if batch.examples else 0.0 for _, part in parts_of(self.objective)]

    def forward(self, batch: Batch, shares: Sequence[float]) -> Tensor:
        terms = [
            part(self.model, batch) * (weight * share)
            for (weight, part), share in zip(parts_of(self.objective), shares, strict=True)
            if share > 0.0
        ]
        return sum(terms[1:], terms[0]) if terms else self._nothing()

    def _nothing(self) -> Tensor:
        """No targets here, though other processes have some: no gradient, and still a loss to go back from."""
        return next(weight for weight in self.parameters() if weight.requires_grad).sum() * 0.0
