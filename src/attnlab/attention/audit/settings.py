"""Which settings of its shape a mixer reads: one that it does not read has no effect on it."""

from __future__ import annotations

from dataclasses import fields

import torch

from attnlab.attention.registry import MixerShape, build_mixer


class WatchedShape(MixerShape):
    """A shape that notes which of its fields are read once it is `watched`."""

    def __getattribute__(self, name: str) -> object:
        read = object.__getattribute__(self, "__dict__").get("read")
        if read is not None and name in NAMES:
            read.add(name)
        return object.__getattribute__(self, name)


NAMES = frozenset(field.name for field in fields(MixerShape))


def settings_read(name: str, shape: MixerShape) -> set[str]:
    """The fields that the mixer of that name reads while it is built in that shape, and in a call in training."""
    watched = WatchedShape(**{field: getattr(shape, field) for field in NAMES})
    read: set[str] = set()
    object.__setattr__(watched, "read", read)  # from here on: checking the shape has read all of it
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        build_mixer(name, watched).train()(torch.zeros(1, min(4, shape.context), shape.width))
    return read
