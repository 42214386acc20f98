"""A text with nothing to learn but repetition: random strings, each written twice, one after the other.

    qZ3kqZ3k 0mRxW8T0mRxW8T …     (without the spaces)

No letter is more likely than another, and lengths vary, so that counting back does not find the first copy. Half of the
text can be predicted by whoever looks for the last occurrence of the current letter and takes what followed it.
"""

from __future__ import annotations

import random
import string

ALPHABET = string.ascii_letters + string.digits
SHORTEST, LONGEST = 4, 12


def repeated_strings(characters: int, seed: int = 0) -> str:
    """At least so many characters; a string has SHORTEST to LONGEST of them before it is repeated."""
    generator = random.Random(seed)
    pieces: list[str] = []
    written = 0
    while written < characters:
        piece = "".join(generator.choices(ALPHABET, k=generator.randint(SHORTEST, LONGEST)))
        pieces += [piece, piece]
        written += 2 * len(piece)
    return "".join(pieces)
