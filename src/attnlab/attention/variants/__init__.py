"""The kinds of attention besides the vanilla one; each file enters its own into the registry."""

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
