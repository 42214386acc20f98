"""How the tokens of a batch lie in memory while a model works on them: in padded rows, or packed without padding.

Both have the same three verbs, so a model reads the same either way:

    pack     (B, T, ...) to what the layers work on
    mix      apply a mixer to that
    unpack   back to (B, T, ...)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.attention.attention import Attention


class Padded:
    """Rows as they come. `real` (B, T) is True for tokens; None: all are."""

    def __init__(self, real: Tensor | None) -> None:
        self.real = real

    def pack(self, x: Tensor) -> Tensor:
        return x

    def mix(self, mixer: nn.Module, x: Tensor) -> Tensor:
        return mixer(x, self.real)

    def unpack(self, x: Tensor) -> Tensor:
        return x


class Packed:
    """The real tokens alone, (N, ...), rows of one length next to each other.

    Linear layers and norms do not care which sequence a token belongs to; mixers do, and get the sequences of one
    length together, which need no padding among themselves.
    """

    def __init__(self, real: Tensor) -> None:
        self.shape = real.shape
        lengths = real.sum(1)
        order = lengths.argsort(stable=True)
        places = torch.arange(real.numel(), device=real.device).view(real.shape)
        self.index = places[order][real[order]]  # (N,), where each token stands in the B·T places
        found, counts = lengths[order].unique_consecutive(return_counts=True)
        groups = zip(counts.tolist(), found.tolist(), strict=True)
        self.groups = [(rows, length) for rows, length in groups if length]

    def pack(self, x: Tensor) -> Tensor:
        return x.flatten(0, 1)[self.index]

    def mix(self, mixer: nn.Module, x: Tensor) -> Tensor:
        if isinstance(mixer, Attention):
            return mixer.packed(x, self.groups)
        parts = x.split([rows * length for rows, length in self.groups])
        rows = [part.unflatten(0, group) for part, group in zip(parts, self.groups, strict=True)]
        return torch.cat([mixer(part).flatten(0, 1) for part in rows])

    def unpack(self, x: Tensor) -> Tensor:
        """Padding becomes zeros."""
        whole = x.new_zeros(self.shape.numel(), *x.shape[1:])
        return whole.index_copy(0, self.index, x).unflatten(0, self.shape)


def layout(real: Tensor | None, unpad: bool) -> Padded | Packed:
    if real is None or bool(real.all()):
        return Padded(None)
    return Packed(real) if unpad else Padded(real)
