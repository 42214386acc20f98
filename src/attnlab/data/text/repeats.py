"""A text with one thing to learn: repetition.

It consists of strings of random characters, each written several times, one after the other. No character is more
likely than another and none follows from the one before it, so a first copy cannot be predicted; a later copy can, by
the last occurrence of the current character and what followed it. The strings differ in length, so that counting back
does not find the copy before.
"""

from __future__ import annotations

import random
import string

ALPHABET = string.ascii_letters + string.digits
SHORTEST, LONGEST = 4, 16
COPIES = (2, 4)


def repeated_strings(characters: int, seed: int = 0) -> str:
    """At least so many characters; a string has SHORTEST to LONGEST of them and is written 2 to 4 times."""
    generator = random.Random(seed)
    pieces: list[str] = []
    written = 0
    while written < characters:
        piece = "".join(generator.choices(ALPHABET, k=generator.randint(SHORTEST, LONGEST)))
        copies = generator.randint(*COPIES)
        pieces += [piece] * copies
        written += copies * len(piece)
    return "".join(pieces)
