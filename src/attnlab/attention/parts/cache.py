"""What a mixer remembers between calls while a sequence is decoded token by token.

Sequences in a batch may have different lengths. Real tokens come first and padding after them, so
the slot of a token in the memory is its position, and a new token of row b goes to slot lengths[b]:

    row 0   W h o ? ⁇ M i l a n          padding ⁇ of the prompts is overwritten
    row 1   W h e r e ? R o m e          by the first tokens of the answers

A mixer with a running state keeps it under a name of its own in `state`; one that looks back at its
past stores it with `extend`; for one that has neither, `replay` runs the whole sequence again. The first
axis of every tensor is the batch, so that `select` can drop or repeat sequences.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnlab.attention.parts.weighting import VisibleKeys


class Cache:
    """The memory of one mixer: tensors by name, and how many tokens of each row it has read.

    While all rows have read as many, `read` is that number: positions are the same for all rows, new tokens go to one
    slice of the memory, and the next token needs no mask, since it sees all that is stored.
    """

    def __init__(self) -> None:
        self.state: dict[str, Tensor] = {}
        self.read: int | None = 0
        """Tokens of every row; None: they differ, see `lengths`."""
        self._uneven: Tensor | None = None  # (B,), when they differ
        self._rows: Tensor | None = None  # what was read last, for its number of rows and its device

    @property
    def lengths(self) -> Tensor | None:
        """The tokens of each row (B,); None before the first."""
        if self._uneven is not None or self._rows is None:
            return self._uneven
        return torch.full((len(self._rows),), self.read or 0, device=self._rows.device)

    def positions(self, x: Tensor) -> Tensor:
        """Positions (T,) or (B, T) of the tokens x (B, T, ...) about to be read."""
        steps = torch.arange(self.read or 0, (self.read or 0) + x.shape[1], device=x.device)
        return steps if self._uneven is None else self._uneven[:, None] + steps

    def advance(self, x: Tensor, padding: Tensor | None) -> None:
        """Count the tokens x (B, T, ...) as read. Called once, after the mixer has stored what it needs."""
        self._rows = x[:, 0, :0].detach()  # no numbers: it keeps nothing alive
        if self._uneven is None and padding is not None and not bool(padding.all()):
            self._uneven, self.read = self.lengths, None
        if self._uneven is not None:
            self._uneven = self._uneven + (x.shape[1] if padding is None else padding.sum(1))
        else:
            assert self.read is not None
            self.read += x.shape[1]

    def select(self, rows: Tensor) -> None:
        """Continue with these rows of the batch, in this order: fewer when some are done, or some twice."""
        self.state = {name: tensor[rows] for name, tensor in self.state.items()}
        self._rows = None if self._rows is None else self._rows[rows]
        self._uneven = None if self._uneven is None else self._uneven[rows]

    def append(self, name: str, new: Tensor, at: Tensor) -> Tensor:
        """Store new (B, H, T, D) at the positions at (T,) or (B, T); return everything stored (B, H, S, D)."""
        even = at.dim() == 1 and self.read is not None
        end = self.read + new.shape[2] if even and self.read is not None else int(at.max()) + 1
        stored = self.state.get(name)
        if stored is None or stored.shape[2] < end:
            # Grow by doubling, so that n steps copy O(n) numbers and not O(n²).
            room = new.new_zeros(*new.shape[:2], max(end, 2 * (0 if stored is None else stored.shape[2])), new.shape[3])
            if stored is not None:
                room[:, :, : stored.shape[2]] = stored
            stored = self.state[name] = room
        if even:
            stored[:, :, end - new.shape[2] : end] = new
        else:
            rows = torch.arange(new.shape[0], device=new.device)[:, None]
            stored[rows, :, at] = new.transpose(1, 2)  # advanced indices come first: (B, T, H, D)
        return stored[:, :, :end]

    def extend(
        self, x: Tensor, padding: Tensor | None, at: Tensor, **new: Tensor
    ) -> tuple[VisibleKeys, tuple[Tensor, ...]]:
        """Read tokens x (B, T, C) at the positions at (T,) or (B, T): store what is made of them, each (B, H, T, D).

        Returns what queries at these positions may see of the slots, and everything stored, (B, H, S, D) each.
        """
        stored = tuple(self.append(name, tensor, at) for name, tensor in new.items())
        self.advance(x, padding)
        slots = torch.arange(stored[0].shape[2], device=at.device)
        if self.read is not None:
            return VisibleKeys(at, slots, causal=x.shape[1] > 1), stored
        return VisibleKeys(at, slots, causal=True, real=self._real(slots)), stored

    def replay(self, mixer: Callable[[Tensor, Tensor | None], Tensor], x: Tensor, padding: Tensor | None) -> Tensor:
        """The mixer's outputs at the new tokens x (B, T, C), by running it over all inputs so far.

        Correct for every causal mixer, at the price of a full pass per new token.
        """
        at = self.positions(x)
        inputs = self.append("inputs", x[:, None], at)[:, 0]  # (B, S, C)
        self.advance(x, padding)
        outputs = mixer(inputs, self._real(torch.arange(inputs.shape[1], device=x.device)))
        return outputs.gather(1, at.expand(len(x), -1)[:, :, None].expand(-1, -1, outputs.shape[2]))

    def _real(self, slots: Tensor) -> Tensor:
        """(B, S), True for slots (S,) that hold a token."""
        assert self.lengths is not None
        return slots < self.lengths[:, None]
