"""A classifier over a whole set: texts of like length together, what it says back in the set's order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attnlab.data.batching import Batches, BatchPlan, Examples

BATCH = 64


class Part:
    """Some of the examples of a set."""

    def __init__(self, whole: Examples, chosen: Sequence[int]) -> None:
        self.whole, self.chosen = whole, chosen
        self.lengths = [whole.lengths[n] for n in chosen]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        return self.whole.collate([self.chosen[n] for n in indices], epoch)


@torch.inference_mode()
def predict(model: nn.Module, data: Examples, device: str, batch: int = BATCH) -> Tensor:
    """The logits (N, K), or whatever the model gives a text, in the order of `data`."""
    was_training = model.training
    model.eval()
    found: list[Tensor] = []
    order: list[int] = []
    for part in Batches(data, BatchPlan(data.lengths, batch)).once():
        inputs = {name: tensor for name, tensor in part.to(torch.device(device)).inputs.items() if name != "labels"}
        found.append(model(**inputs).float().cpu())
        order += part.indices
    model.train(was_training)
    joined = torch.cat(found)
    back = torch.empty_like(joined)
    back[order] = joined
    return back.clone()
