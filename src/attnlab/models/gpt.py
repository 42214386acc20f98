"""A GPT small enough to read: embeddings, blocks of attention and MLP, a head. Any mixer, any positions.

It maps tokens to logits; losses, data and training are elsewhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.attention import Cache, MixerShape, build_mixer
from attnlab.attention.class_source import class_text
from attnlab.attention.parts.positions import embedding_positions
from attnlab.attention.parts.weighting import Dropout
from attnlab.attention.registry import handed_in
from attnlab.base.errors import UserError, unknown
from attnlab.config.gpt import GPTSection
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.parts import build_mlp, build_norm
from attnlab.runs.own_attention import COPY, TEXT


@dataclass(frozen=True)
class GPTShape:
    """All settings of a GPT's architecture."""

    vocabulary: int
    """V, the number of different tokens."""
    layers: int = 4
    heads: int = 8
    width: int = 256
    """C, the size of a token's vector."""
    context: int = 128
    """The longest sequence it is built for."""
    attention: str = "vanilla"
    """The name of a mixer, or the path of a .py file with your own."""
    positions: str = "learned"
    """none, learned, sinusoidal, rotary or alibi."""
    norm: str = "layernorm"
    """layernorm or rmsnorm."""
    activation: str = "gelu"
    """gelu, relu, relu2, silu or swiglu."""
    qk_norm: bool = False
    """Normalise queries and keys."""
    zero_init: bool = False
    """Start all output projections at zero: every block is the identity at first."""
    tied: bool = False
    """Use the token embeddings as the head."""
    bias: bool = True
    """Give the linear layers a bias."""
    dropout: float = 0.1
    """On embeddings and on the output of each mixer and MLP."""
    attention_dropout: float | None = None
    """On attention weights; None: as `dropout`. At 0 training uses the fused kernel too."""

    def __post_init__(self) -> None:
        for name in ("vocabulary", "layers"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}: it must be at least 1.")
        if not 0.0 <= self.dropout < 1.0:
            raise UserError(f"dropout is {self.dropout}: give a number from 0 up to, not including, 1.")
        self.mixer()  # raises for an impossible shape

    def mixer(self) -> MixerShape:
        return MixerShape(
            width=self.width,
            heads=self.heads,
            context=self.context,
            causal=True,
            dropout=self.dropout if self.attention_dropout is None else self.attention_dropout,
            positions=self.positions,
            qk_norm=self.qk_norm,
            bias=self.bias,
        )


VANILLA: dict[str, Any] = {}
MODERN: dict[str, Any] = {
    "positions": "rotary",
    "norm": "rmsnorm",
    "activation": "relu2",
    "qk_norm": True,
    "zero_init": True,
    "bias": False,
    "dropout": 0.0,
}
PRESETS = {"vanilla": VANILLA, "modern": MODERN}


def preset(name: str, vocabulary: int, **changes: Any) -> GPTShape:
    """The shape of that name, with some fields changed: preset("modern", vocabulary=256, layers=2)."""
    if name not in PRESETS:
        raise UserError(unknown("preset", name, PRESETS))
    return replace(GPTShape(vocabulary), **(PRESETS[name] | changes))


def shape_of(section: GPTSection, vocabulary: int) -> GPTShape:
    """The shape for a section of settings: values that are not given come from the preset."""
    given = {name: value for name, value in section.model_dump().items() if value not in (None, "preset")}
    return preset(given.pop("preset"), vocabulary, **given)


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, shape: GPTShape) -> None:
        super().__init__()
        self.mixer_norm = build_norm(shape.norm, shape.width)
        self.mixer = build_mixer(shape.attention, shape.mixer())
        self.mlp_norm = build_norm(shape.norm, shape.width)
        self.mlp = build_mlp(shape.activation, shape.width, shape.bias)
        self.dropout = Dropout(shape.dropout)

    def forward(self, x: Tensor, padding: Tensor | None, cache: Cache | None) -> Tensor:
        x = x + self.dropout(self.mixer(self.mixer_norm(x), padding, cache))
        return x + self.dropout(self.mlp(self.mlp_norm(x)))


class GPT(nn.Module):
    """Tokens (B, T) to logits (B, T, V) of the next token."""

    def __init__(self, shape: GPTShape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = embedding_positions(shape.positions, shape.width, shape.context)
        self.dropout = Dropout(shape.dropout)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = build_norm(shape.norm, shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        for module in self.modules():  # each once: a person's own mixer is found under two names
            _initialise(module)
        if shape.zero_init:
            self._zero_outputs()
        if shape.tied:
            self.head.weight = self.tokens.weight

    def forward(
        self,
        tokens: Tensor,
        padding: Tensor | None = None,
        cache: list[Cache] | None = None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """`padding` (B, T) is True for real tokens, which come first; `cache` is one of `new_cache`.

        `wanted` (B, T) selects the positions of logits: only these are computed, as (N, V).
        """
        caches: list[Cache | None] = [*cache] if cache is not None else [None] * len(self.blocks)
        if caches and caches[0] is not None:
            at = caches[0].positions(tokens)
        else:
            at = torch.arange(tokens.shape[1], device=tokens.device)
        self._check(tokens, padding, at)
        x = self.dropout(self.positions(self.tokens(tokens), at))  # (B, T, C)
        for block, block_cache in zip(self.blocks, caches, strict=True):
            x = block(x, padding, block_cache)
        return self.head(self.norm(x if wanted is None else x[wanted]))

    def new_cache(self) -> list[Cache]:
        """An empty memory for decoding, one per layer."""
        return [Cache() for _ in self.blocks]

    @property
    def longest(self) -> int | None:
        """The longest sequence this model can read; None: no limit by positions or mixers."""
        parts = [self.positions, *(block.mixer for block in self.blocks)]
        limits = [limit for part in parts if (limit := getattr(part, "longest", None)) is not None]
        return min(limits, default=None)

    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def _check(self, tokens: Tensor, padding: Tensor | None, at: Tensor) -> None:
        limit = self.longest
        if limit is not None:
            length = tokens.shape[1] if at.dim() == 1 else int(at.max()) + 1
            if length > limit:
                raise UserError(
                    f"a sequence of {length} tokens is longer than the {limit} this model was built for: "
                    "shorten it, or build the model with a larger context."
                )
        if padding is not None and bool((padding[:, 1:] > padding[:, :-1]).any()):
            raise UserError("a row of the batch has padding before real tokens: put it at the end.")

    def _zero_outputs(self) -> None:
        for block in self.blocks:
            for part in (block.mixer, block.mlp):
                output = getattr(part, "output", None)
                if isinstance(output, nn.Linear):
                    nn.init.zeros_(output.weight)


def _initialise(module: nn.Module) -> None:
    """Normal weights of deviation 0.02 and zero biases, as GPT-2; other parameters keep their initial values."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def make_gpt(section: GPTSection, vocabulary: Vocabulary) -> GPT:
    """A new model; raises for an impossible shape."""
    shape = shape_of(section, len(vocabulary))
    build_mixer(shape.attention, shape.mixer())  # raises for a bad variant before all blocks are built
    return GPT(shape)


def model_files(section: GPTSection, vocabulary: Vocabulary) -> dict[str, str]:
    """The files that belong to the weights: the vocabulary, and a user's own attention."""
    return {
        "vocabulary.json": json.dumps(vocabulary.to_dict(), ensure_ascii=False),
        **attention_file(section.attention),
    }


def attention_file(name: str) -> dict[str, str]:
    """A user's own attention as a file of the run: its code, or the text of a class that is no code on its own."""
    if name.endswith(".py"):
        return {COPY: Path(name).read_bytes().decode("utf-8")}
    build = handed_in(name)
    return {} if build is None else {TEXT: class_text(build)}
