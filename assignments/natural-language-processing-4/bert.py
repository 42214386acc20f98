"""BERT in PyTorch alone: embeddings and a stack of layers. Devlin et al. 2018, arXiv:1810.04805.

Shapes: B texts of T pieces, C the width (`hidden_size`), H heads of D = C / H. The configuration has the names of
Hugging Face's config.json; the modules have short names, which weights.py translates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
}


@dataclass(frozen=True)
class BertConfig:
    """The defaults are BERT-base."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0
    labels: tuple[str, ...] = ("0", "1")
    """Names of the classes."""


class BertModel(nn.Module):
    """Pieces (B, T) to vectors (B, T, C)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.words = embedding(config, config.vocab_size)
        self.positions = embedding(config, config.max_position_embeddings)
        self.types = embedding(config, config.type_vocab_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """`attention_mask` (B, T) is 1 for pieces and 0 for padding; `token_type_ids` are 0 if not given."""
        x = self.words(input_ids) + self.positions.weight[: input_ids.shape[1]]  # (B, T, C)
        x = x + (self.types.weight[0] if token_type_ids is None else self.types(token_type_ids))
        x = self.dropout(self.norm(x))
        visible = None if attention_mask is None else attention_mask.bool()[:, None, None]  # (B, 1, 1, T)
        for layer in self.layers:
            x = layer(x, visible)
        return x


class BertLayer(nn.Module):
    """x = norm(x + attention(x)), then x = norm(x + MLP(x))."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.wide = linear(config, width, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.narrow = linear(config, config.intermediate_size, width)
        self.mlp_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, visible: Tensor | None) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention(x, visible)))
        return self.mlp_norm(x + self.dropout(self.narrow(self.activation(self.wide(x)))))


class SelfAttention(nn.Module):
    """Multi-head self-attention, every piece looking at all others:

        A = softmax(Q Kᵀ / √D + mask),    output = W (A V)

    with mask = 0 for pieces and -∞ for padding, and dropout on A in training. Q, K, V are linear maps of the input,
    split into H heads; F.scaled_dot_product_attention computes A V.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads, self.dropout = config.num_attention_heads, config.attention_probs_dropout_prob
        self.query, self.key, self.value = (linear(config, width, width) for _ in range(3))
        self.output = linear(config, width, width)

    def forward(self, x: Tensor, visible: Tensor | None) -> Tensor:
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        rate = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, visible, dropout_p=rate)  # (B, H, T, D)
        return self.output(mixed.transpose(1, 2).flatten(2))


def linear(config: BertConfig, inputs: int, outputs: int) -> nn.Linear:
    """A new linear layer as BERT starts it: small normal weights, no bias."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=config.initializer_range)
    nn.init.zeros_(layer.bias)
    return layer


def embedding(config: BertConfig, rows: int) -> nn.Embedding:
    table = nn.Embedding(rows, config.hidden_size)
    nn.init.normal_(table.weight, std=config.initializer_range)
    return table
