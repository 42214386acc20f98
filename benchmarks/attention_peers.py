"""The peers of `attention.py`: the same layer, softmax attention with four projections, in other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention import MixerShape


class TorchFused(nn.Module):
    """`F.scaled_dot_product_attention` between two linear layers, and nothing else."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.output = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(y.transpose(1, 2).reshape(B, T, C))


class GPT2(nn.Module):
    """The attention block of GPT-2 from transformers, with new weights.

    `sdpa`, the default of a model loaded by transformers, calls torch's fused kernel; `eager` stores the
    T × T weights and needs the mask that the model would pass to the block.
    """

    def __init__(self, shape: MixerShape, implementation: str) -> None:
        super().__init__()
        from transformers import GPT2Config
        from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

        config = GPT2Config(
            n_embd=shape.width, n_head=shape.heads, n_positions=shape.context, attn_pdrop=0.0, resid_pdrop=0.0
        )
        config._attn_implementation = implementation
        self.block: Any = GPT2Attention(config, layer_idx=0)
        self.mask = None
        if implementation == "eager":
            self.mask = torch.full((1, 1, shape.context, shape.context), float("-inf")).triu(1)

    def forward(self, x: Tensor) -> Tensor:
        mask = None if self.mask is None else self.mask[..., : x.shape[1], : x.shape[1]]
        y: Tensor = self.block(x, attention_mask=mask)[0]
        return y


PEERS: dict[str, tuple[Callable[[MixerShape], nn.Module], int]] = {
    "torch-fused": (TorchFused, 1),
    "gpt2-sdpa": (lambda shape: GPT2(shape, "sdpa"), 1),
    "gpt2-eager": (lambda shape: GPT2(shape, "eager"), 2),
}
"""By name: its constructor, and the power of T in its memory."""
