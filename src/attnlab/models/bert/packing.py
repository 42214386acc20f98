"""The layout of a batch inside a model: padded rows, or packed without padding.

Both layouts have the same three methods, so the model's code is the same for both:

    pack     (B, T, ...) to the layout
    mix      apply a mixer in the layout
    unpack   back to (B, T, ...)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnlab.attention.attention import Attention


class Padded:
    """Padded rows, unchanged. `real` (B, T) is True for tokens; None: all are."""

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

    Linear layers and norms treat every token alike; mixers need sequences, and get those of one length together,
    which need no padding.
    """

    def __init__(self, real: Tensor) -> None:
        self.shape = real.shape
        lengths = real.sum(1)
        order = lengths.argsort(stable=True)
        positions = torch.arange(real.numel(), device=real.device).view(real.shape)
        self.index = positions[order][real[order]]  # (N,), the index of each token among the B·T positions
        distinct, counts = lengths[order].unique_consecutive(return_counts=True)
        groups = zip(counts.tolist(), distinct.tolist(), strict=True)
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
        """Zeros at padding."""
        whole = x.new_zeros(self.shape.numel(), *x.shape[1:])
        return whole.index_copy(0, self.index, x).unflatten(0, self.shape)


def layout(real: Tensor | None, unpad: bool) -> Padded | Packed:
    if real is None or bool(real.all()):
        return Padded(None)
    return Packed(real) if unpad else Padded(real)
