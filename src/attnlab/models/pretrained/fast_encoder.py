"""Encoders of `transformers` in less time on a CPU: the same function with dropout and attention exchanged.

In training, a tenth of the time of a small encoder goes into drawing random numbers for dropout, one per call; and
torch's attention, which has no fast path with dropout on a CPU, reads the weights a second time to find rows that
are masked completely. An encoder has no such row: every text has a first token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention.parts.weighting import Dropout, drop

NAME = "attnlab"
OFF = "off"


def exchange_layers(body: Any) -> str:
    """Exchange the dropout modules of a model, and its attention where that is possible; weights stay as they are.

    Returns what was exchanged and how often.
    """
    dropouts = 0
    for module in list(body.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p).train(child.training))
                dropouts += 1
    exchanged = [f"{dropouts} dropout modules"] if dropouts else []
    if getattr(body.config, "_attn_implementation", None) == "sdpa":
        _register()
        body.set_attn_implementation(NAME)
        exchanged.append(f"the attention of {body.config.num_hidden_layers} layers")
    return " and ".join(exchanged) or "nothing to exchange"


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """dropout(softmax(q·kᵀ·scale + mask)) v: (B, H, T, D) to (B, T, H, D); without dropout, torch's own."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if (
        not dropout
        or query.device.type != "cpu"
        or (attention_mask is None and causal)
        or key.shape[1] != query.shape[1]
        or any(more.get(name) is not None for name in ("position_bias", "softcap", "cache"))
    ):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, is_causal, **more)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = (query * scale) @ key.transpose(-1, -2)  # (B, H, T, S)
    if attention_mask is not None:
        scores += _bias(attention_mask, scores.dtype)
    return (drop(scores.softmax(-1), dropout) @ value).transpose(1, 2).contiguous(), None


def _bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Added to the scores: 0 where a key is visible, the lowest number where it is not."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)
