"""The settings of a GPT."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from attnlab.config.sections import Section, option


class ShapeSection(Section):
    """The shape of a model; the preset decides what is not given."""

    topic: ClassVar[str] = "Model"
    common: ClassVar[tuple[str, ...] | None] = ("preset", "layers", "heads", "width", "context", "dropout")

    preset: Literal["vanilla", "modern"] = option(
        "vanilla", "vanilla (the documents' GPT) or modern (rotary, RMSNorm, QK-norm, squared ReLU)."
    )
    layers: int = option(4, "Number of layers: blocks of attention and MLP.", ge=1, le=10_000)
    heads: int = option(8, "Attention heads; the width must be a multiple of their number.", ge=1, le=1_000_000)
    width: int = option(256, "Size of a token's vector (C).", ge=1, le=1_000_000)
    context: int = option(128, "Longest sequence in tokens (T).", ge=8, le=100_000_000)
    dropout: float | None = option(None, "Share of activations dropped (default: the preset's).", ge=0, lt=1)
    norm: str | None = option(None, "layernorm or rmsnorm (default: the preset's).")
    activation: str | None = option(None, "gelu, relu, relu2, silu or swiglu (default: the preset's).")
    qk_norm: bool | None = option(None, "Normalise queries and keys (default: the preset's).")
    zero_init: bool | None = option(None, "Start every block as the identity (default: the preset's).")
    tied: bool | None = option(None, "Use the token embeddings as the head (default: the preset's).")


class GPTSection(ShapeSection):
    """The settings of a GPT."""

    common: ClassVar[tuple[str, ...] | None] = (*(ShapeSection.common or ()), "attention", "positions")

    attention: str = option("vanilla", "Attention variant by name, or your own .py file with one class.")
    positions: str = option("preset", "none, learned, sinusoidal, rotary, alibi, or preset: the preset's.")

    @field_validator("attention")
    @classmethod
    def _absolute_file(cls, name: str) -> str:
        return os.path.abspath(os.path.expanduser(name)) if name.endswith(".py") else name

    @field_validator("positions", mode="before")
    @classmethod
    def _preset_if_none(cls, value: Any) -> Any:
        return "preset" if value is None else value
