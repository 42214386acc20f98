"""What torch's own nn.MultiheadAttention computes, which a person's mixer may be made of.

Its forward is one kernel that shows nothing. The weights are those of a second call that asks for them; queries, keys
and values are the projections of the inputs:

    heads = weights (v W_v + b_v),   output = heads W_o + b_o
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.interpret.listening import Attended


@torch.no_grad()
def attended_by(
    module: nn.MultiheadAttention, args: tuple[object, ...], keywords: Mapping[str, object]
) -> Attended | None:
    """Its weights for these arguments of forward.

    None where it adds keys of its own, keys or values have another width, or the input is no batch.
    """
    given = inspect.signature(module.forward).bind(*args, **keywords).arguments
    inputs = [given[name] for name in ("query", "key", "value")]
    if module.bias_k is not None or module.add_zero_attn or module.in_proj_weight is None or inputs[0].dim() != 3:
        return None
    _, weights = module.forward(**{**given, "need_weights": True, "average_attn_weights": False})
    assert weights is not None  # asked for above
    batch_first = [x if module.batch_first else x.transpose(0, 1) for x in inputs]
    queries, keys, values = (
        F.linear(x, weight, bias).unflatten(-1, (module.num_heads, -1)).transpose(1, 2)  # (B, H, T, D)
        for x, weight, bias in zip(batch_first, module.in_proj_weight.chunk(3), _biases(module), strict=True)
    )
    bias = _bias(given.get("attn_mask"), given.get("key_padding_mask"), weights)
    scale = queries.shape[-1] ** -0.5
    return Attended(weights, values, weights @ values, queries, keys, bias, scale)


def _biases(module: nn.MultiheadAttention) -> tuple[Tensor | None, ...]:
    return (None, None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)


def _bias(mask: Tensor | None, padding: Tensor | None, weights: Tensor) -> Tensor | None:
    """What the masks add to the scores (B, H, T, S); True of a boolean mask hides a key."""
    added = None
    if mask is not None:
        added = _numbers(mask if mask.dim() == 2 else mask.view(weights.shape), weights)
    if padding is not None:
        hidden = _numbers(padding[:, None, None, :], weights)
        added = hidden if added is None else added + hidden
    return added


def _numbers(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    return like.new_zeros(mask.shape).masked_fill_(mask, float("-inf"))
