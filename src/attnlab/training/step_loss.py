"""A model and its objective as one module: a step is one call of it, however often the objective calls the model.

Averaging gradients over processes needs that: DDP waits for the parameters that one call has used.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from attnlab.data.batching import Batch
from attnlab.training.objectives import Objective, parts_of


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
