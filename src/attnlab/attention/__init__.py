"""What attention is: mixers that map (B, T, C) to (B, T, C), found by name.

attention.py   multi-head attention, put together from parts: the vanilla one
parts/         what it and its variants are made of: projections, masks, weights, positions, cache
variants/      one file per kind of attention; importing it enters it into the registry
registry.py    the variants by name        user_file.py   a variant from a person's own file
audit/         what holds for a mixer: no future, the same when decoded step by step, cost
pieces.py      scaled dot-product attention, one step per function
"""

from attnlab.attention import attention, variants
from attnlab.attention.parts.cache import Cache
from attnlab.attention.registry import VARIANTS, build_mixer, find_variant
from attnlab.attention.variant import MixerShape, Variant

__all__ = ["VARIANTS", "Cache", "MixerShape", "Variant", "attention", "build_mixer", "find_variant", "variants"]
