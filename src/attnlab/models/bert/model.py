"""BERT in plain PyTorch with the lab's attention. Devlin et al. 2018, arXiv:1810.04805.

    x = norm(words + places + types)
    x = norm(x + attention(x)),  x = norm(x + mlp(x))      one layer, repeated

Every position sees all others. It has the call signature of `transformers` and loads and saves its folders.
The heads are in heads.py, reading and writing folders in files.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnlab.attention import build_mixer
from attnlab.attention.parts.weighting import Dropout
from attnlab.base.errors import UserError
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.files import Pretrained
from attnlab.models.bert.packing import Packed, Padded, layout
from attnlab.models.parts import MLP


@dataclass(frozen=True)
class BertOutput:
    last_hidden_state: Tensor  # (B, T, C)
    pooler_output: Tensor | None  # (B, C)
    hidden_states: tuple[Tensor, ...] | None = None
    """The embeddings and the output of each layer, with output_hidden_states."""


class BertLayer(nn.Module):
    """Attention, then MLP; each norm follows the sum."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.mixer = build_mixer(config.attention, config.mixer())
        self.mixer_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.mlp = MLP(config.width, activation(config.activation), bias=True, inside=config.inside)
        self.mlp_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, rows: Padded | Packed) -> Tensor:
        x = self.mixer_norm(x + self.dropout(rows.mix(self.mixer, x)))
        return self.mlp_norm(x + self.dropout(self.mlp(x)))


class Pooler(nn.Module):
    """tanh of a linear map of the vector of [CLS], the input of next-sentence prediction."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(x[:, 0]).tanh()


class BertModel(Pretrained):
    """Pieces (B, T) to vectors (B, T, C)."""

    architectures = ("BertModel",)

    def __init__(self, config: BertConfig, pooler: bool = True) -> None:
        super().__init__(config)
        self.words = nn.Embedding(config.vocabulary, config.width, padding_idx=config.pad_id)
        self.places = nn.Embedding(config.context, config.width)
        self.types = nn.Embedding(config.types, config.width)
        self.embedding_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config.layers))
        self.pooler = Pooler(config.width) if pooler else None
        self.initialise()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> BertOutput:
        """`attention_mask` (B, T) is 1 for real pieces; `token_type_ids` are 0 if not given."""
        self._check(input_ids, token_type_ids)
        rows = layout(None if attention_mask is None else attention_mask.bool(), self.config.unpad)
        x = self._embed(input_ids, token_type_ids, rows)  # (B, T, C), or (N, C) without padding
        states = [x]
        for layer in self.layers:
            x = layer(x, rows)
            if output_hidden_states:
                states.append(x)
        last = rows.unpack(x)
        return BertOutput(
            last,
            None if self.pooler is None else self.pooler(last),
            tuple(map(rows.unpack, states)) if output_hidden_states else None,
        )

    def _embed(self, input_ids: Tensor, token_type_ids: Tensor | None, rows: Padded | Packed) -> Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
        x = self.words(rows.pack(input_ids)) + self.places(rows.pack(places))
        x = x + (self.types.weight[0] if token_type_ids is None else self.types(rows.pack(token_type_ids)))
        return self.dropout(self.embedding_norm(x))

    def _check(self, input_ids: Tensor, token_type_ids: Tensor | None) -> None:
        config = self.config
        if input_ids.shape[1] > config.context:
            raise UserError(
                f"a sequence of {input_ids.shape[1]} pieces is longer than the {config.context} positions of this "
                "model: cut it when encoding."
            )
        for name, ids, size in (("piece", input_ids, config.vocabulary), ("segment", token_type_ids, config.types)):
            if ids is not None and ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < size:
                wrong = int(ids.max()) if int(ids.max()) >= size else int(ids.min())
                raise UserError(
                    f"{name} {wrong} is not among the model's {size}: use the tokenizer of the same folder."
                )


def activation(name: str) -> nn.Module:
    """An activation by its Hugging Face name."""
    if name == "relu":
        return nn.ReLU()
    if name in ("silu", "swish"):
        return nn.SiLU()
    return nn.GELU("none" if name == "gelu" else "tanh")
