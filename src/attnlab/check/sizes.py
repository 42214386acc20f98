"""The sizes of a check's inputs, drawn anew for every file."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

SHORT, LONG = range(5, 12), range(17, 34)  # numbers of tokens


@dataclass(frozen=True)
class Sizes:
    batch: int
    tokens: int
    heads: int
    head: int
    """Features per head."""

    @property
    def width(self) -> int:
        return self.heads * self.head

    def __str__(self) -> str:
        return f"{self.tokens} tokens, width {self.width} and {self.heads} heads"


def draw_sizes(chance: random.Random, tokens: range = SHORT) -> Sizes:
    """Sizes that all differ, so that swapped axes are noticed, and that tell all known wrong scales apart."""
    while True:
        sizes = Sizes(chance.randint(2, 5), chance.choice(tokens), chance.randint(2, 4), chance.randint(5, 8))
        numbers = (sizes.batch, sizes.tokens, sizes.heads, sizes.head, sizes.width)
        if len(set(numbers)) == len(numbers) and _scales_differ(sizes):
            return sizes


def _scales_differ(sizes: Sizes) -> bool:
    width, heads, head = sizes.width, sizes.heads, sizes.head
    divisors = [1.0, 1 / head, head, head**2, width, width**2, width / heads**2, width * heads, math.isqrt(head) ** 2]
    divisors.append(sizes.tokens)  # all squared: a scale is a root
    return all(abs(a / b - 1) > 1e-3 for i, a in enumerate(divisors) for b in divisors[:i])
