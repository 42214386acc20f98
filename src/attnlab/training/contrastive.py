"""Texts of one class close together, texts of different classes at right angles: the encoder learns from pairs.

The idea of SetFit (Tunstall et al. 2022): n labelled texts are n(n - 1)/2 labelled pairs, so a few labels go far. There
each pair is encoded by itself; here a batch of n texts is encoded once, and all its pairs are in the loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.data.batching import Batch

PIECES = 4
"""In how many pieces a batch is encoded."""


class Encoder(Protocol):
    """A classifier of which only the vectors are needed."""

    def features(self, **inputs: Tensor) -> Tensor: ...


class Contrastive:
    """(cos(v_i, v_j) - y_ij)² over all pairs i < j of a batch, y_ij = 1 within a class and 0 between classes.

    Both kinds have half the weight each, as in SetFit, which draws as many pairs of the one as of the other; a kind
    that the batch has no pair of is left out. Rows of similar length are encoded together, so that little of the work
    is padding.
    """

    def weight(self, batch: Batch) -> float:
        return float(batch.examples)

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        vectors, labels = [], []
        rows = replace(batch, indices=tuple(range(len(batch.inputs["labels"]))))  # an example is two of them
        for piece in rows.pieces(PIECES):
            inputs = dict(piece.inputs)
            labels.append(inputs.pop("labels"))
            vectors.append(cast(Encoder, model).features(**inputs))
        return pair_loss(torch.cat(vectors), torch.cat(labels))


def pair_loss(vectors: Tensor, labels: Tensor) -> Tensor:
    """The mean over same-class pairs and the mean over other pairs, averaged; vectors (B, C), labels (B,)."""
    directions = F.normalize(vectors, dim=1)
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    same = labels[first] == labels[second]  # (P,)
    errors = ((directions @ directions.T)[first, second] - same.to(vectors.dtype)).square()
    means = [errors[kind].mean() for kind in (same, ~same) if bool(kind.any())]
    return torch.stack(means).mean()
