"""Attention: mixers that map (B, T, C) to (B, T, C), found by name.

attention.py   multi-head attention assembled from parts: the vanilla one
parts/         its parts and those of its variants: projections, weights, positions, cache
variants/      one file per kind of attention; importing it adds it to the registry
variant.py     the shape of a mixer and the facts about a variant
registry.py    the variants by name        user_file.py   a variant from a user's file
audit/         checks of a mixer: no future, the same when decoded step by step, cost
pieces.py      scaled dot-product attention, one step per function
"""

from attnlab.attention import attention, variants
from attnlab.attention.parts.cache import Cache
from attnlab.attention.registry import VARIANTS, MixerShape, Variant, build_mixer, find_variant

__all__ = ["VARIANTS", "Cache", "MixerShape", "Variant", "attention", "build_mixer", "find_variant", "variants"]
