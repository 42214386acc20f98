"""What attention is: mixers that map (B, T, C) to (B, T, C), one file each, found by name."""

from attnlab.attention import (  # each enters its variants in the registry  # noqa: F401
    additive,
    aft_conv,
    aft_full,
    aft_local,
    aft_simple,
    argmax,
    cosine,
    distance,
    fastformer,
    grouped,
    linear,
    naive_mask,
    nonlinear,
    performer,
    shared,
    softmax,
    synthesizer,
)
from attnlab.attention.cache import Cache
from attnlab.attention.registry import VARIANTS, build_mixer, find_variant
from attnlab.attention.shape import MixerShape
from attnlab.attention.variant import Variant

__all__ = ["VARIANTS", "Cache", "MixerShape", "Variant", "build_mixer", "find_variant"]
