"""All attention variants by name, and the function that builds a mixer.

A mixer is an `nn.Module` built from one `MixerShape` that maps tokens (B, T, C) to (B, T, C):

    forward(x, padding=None, cache=None)

`padding` (B, T) is True for real tokens, which come first in each row. With a `Cache`, which is for causal
mixers, the call continues the sequence in the cache; the outputs are those of one pass over the whole.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from attnlab.attention.parts.positions import check_positions
from attnlab.attention.user_file import load_variant
from attnlab.attention.variant import INSIDE, MixerShape, Variant
from attnlab.base.errors import UserError, unknown

VARIANTS: dict[str, Variant] = {}

Builder = Callable[[MixerShape], nn.Module]


def variant(
    name: str, *, equation: str, paper: str, time: float, memory: float, positions: frozenset[str] = frozenset()
) -> Callable[[Builder], Builder]:
    """Register the decorated builder under its name."""

    def register(build: Builder) -> Builder:
        VARIANTS[name] = Variant(name, build, equation, paper, time, memory, positions)
        return build

    return register


def find_variant(name: str) -> Variant:
    """The variant of that name, or the one in a user's file when the name ends in .py."""
    if name.endswith(".py"):
        return load_variant(name)
    if name not in VARIANTS:
        raise UserError(
            unknown("attention", name, VARIANTS) + " `attnlab attention` lists all; for your own, give a .py file."
        )
    return VARIANTS[name]


def build_mixer(name: str, shape: MixerShape) -> nn.Module:
    """The mixer of that name, or of that file, in that shape."""
    variant = find_variant(name)
    check_positions(shape.positions)
    if shape.positions in INSIDE - variant.positions:
        raise UserError(
            f"attention {name!r} does not support {shape.positions} positions: "
            "use learned, sinusoidal or none, which act on the embeddings."
        )
    if shape.causal and not variant.causal:
        raise UserError(f"attention {name!r} cannot be causal: use it in a bidirectional model, or choose another.")
    if not shape.causal and not variant.bidirectional:
        raise UserError(f"attention {name!r} is causal only: choose another for a bidirectional model.")
    return variant.build(shape)
