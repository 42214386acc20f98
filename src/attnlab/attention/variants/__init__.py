"""The kinds of attention besides the vanilla one; each file adds its own to the registry."""

from attnlab.attention.variants import (
    additive,
    aft,
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
    synthesizer,
)

__all__ = [
    "additive",
    "aft",
    "argmax",
    "cosine",
    "distance",
    "fastformer",
    "grouped",
    "linear",
    "naive_mask",
    "nonlinear",
    "performer",
    "shared",
    "synthesizer",
]
