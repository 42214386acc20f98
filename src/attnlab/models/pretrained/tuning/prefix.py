"""Prefix tuning: trained keys and values before the text's own, in every layer (Li and Liang 2021). 2·P·C weights each.

    attention(Q, [P_K; K], [P_V; V])

transformers lets a model's attention be a function registered under a new name. One pass over random words records
which modules call it, with their keys and values: the initial values of the prefix.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnlab.base.errors import UserError
from attnlab.models.pretrained.tuning.prompt import random_words

NAME = "attnlab_prefix"


class Prefix(nn.Module):
    """The trained keys and values of one layer, (H, P, D) each."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()
        self.keys, self.values = nn.Parameter(keys.clone()), nn.Parameter(values.clone())

    def before(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """(B, H, T, D) to (B, H, P + T, D)."""
        batch = len(keys)
        return (
            torch.cat([self.keys.expand(batch, -1, -1, -1), keys], 2),
            torch.cat([self.values.expand(batch, -1, -1, -1), values], 2),
        )

    @property
    def length(self) -> int:
        return self.keys.shape[1]


def add_prefix(body: Any, length: int) -> None:
    """Give every attention layer of `body` a prefix."""
    _register()
    try:
        body.set_attn_implementation(NAME)
    except (ValueError, AttributeError):
        raise UserError(f"--tune prefix: {_cannot(body)}") from None
    seen: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}
    _recording.append(seen)
    was_training = body.training
    try:
        with torch.no_grad():
            for words in random_words(body.config, length):
                body.eval()(input_ids=words, attention_mask=torch.ones_like(words))
    finally:
        _recording.pop()
        body.train(was_training)
    if not seen:
        raise UserError(f"--tune prefix: {_cannot(body)}")
    if any(getattr(module, "is_causal", False) for module in seen):
        raise UserError("--tune prefix: this model is causal, and a prefix would shift its mask: use prompt.")
    for module, recorded in seen.items():
        keys, values = (torch.cat(parts, 2)[0] for parts in zip(*recorded, strict=True))  # (H, P, D)
        module.prefix = Prefix(keys, values)


def _cannot(body: Any) -> str:
    return f"a {body.config.model_type} model does not expose its keys and values: use prompt or lora."


_recording: list[dict[nn.Module, list[tuple[Tensor, Tensor]]]] = []


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> Any:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if _recording:
        _recording[-1].setdefault(module, []).append((key, value))
    prefix = getattr(module, "prefix", None)
    if prefix is not None:
        key, value = prefix.before(key, value)
        if attention_mask is not None:  # (B, 1, T, T): True, or 0 to add, where a key is visible
            allowed = True if attention_mask.dtype == torch.bool else 0.0
            attention_mask = F.pad(attention_mask, (prefix.length, 0), value=allowed)
        if more.get("position_bias") is not None:  # T5's; a prefix has no distance
            more["position_bias"] = F.pad(more["position_bias"], (prefix.length, 0))
    return sdpa_attention_forward(module, query, key, value, attention_mask, **more)


def _register() -> None:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
