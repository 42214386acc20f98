"""The loss per token, computed in two ways that agree for a model that does not see the future.

`token_losses`    one pass over the whole block, as in training: the input contains the tokens after position t,
                  and only the model's causal mask hides them
`prefix_losses`   one pass per prefix: when position t is scored, the tokens after it do not exist

A model is used in the second way. If the first gives a lower loss, the model has read the answer.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


def token_losses(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """(B, T), for tokens and targets (B, T)."""
    logits = model(tokens)  # (B, T, V)
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")


def prefix_losses(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """(B, T) as well, by T passes without a cache, which could hide a leak."""
    losses = tokens.new_zeros(tokens.shape, dtype=next(model.parameters()).dtype)
    for t in range(tokens.shape[1]):
        logits = model(tokens[:, : t + 1])[:, -1]  # (B, V)
        losses[:, t] = F.cross_entropy(logits, targets[:, t], reduction="none")
    return losses
