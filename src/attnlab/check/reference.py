"""torch's own attention, called so that it computes what `self_attention` does: attention without projections.

`multi_head_attention_forward` always projects its inputs and its output; identity matrices without biases
make these projections exact no-ops.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import multi_head_attention_forward


def torch_attention(Q: Tensor, K: Tensor, V: Tensor, n_heads: int = 1, causal: bool = True) -> Tensor:
    """Three (B, T, C) → (B, T, C), by torch.nn.functional.multi_head_attention_forward."""
    n_tok, n_embd = Q.shape[-2:]
    identity = torch.eye(n_embd, dtype=Q.dtype)
    hidden = torch.ones(n_tok, n_tok, dtype=torch.bool).triu(1) if causal else None  # torch hides where True
    output, _ = multi_head_attention_forward(
        Q.transpose(0, 1),  # torch expects (T, B, C)
        K.transpose(0, 1),
        V.transpose(0, 1),
        embed_dim_to_check=n_embd,
        num_heads=n_heads,
        in_proj_weight=None,
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=identity,
        out_proj_bias=None,
        training=False,
        need_weights=False,
        attn_mask=hidden,
        use_separate_proj_weight=True,
        q_proj_weight=identity,
        k_proj_weight=identity,
        v_proj_weight=identity,
    )
    return output.transpose(0, 1)
