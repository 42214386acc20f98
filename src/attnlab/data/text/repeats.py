"""A text with two things to learn and nothing else: spelling and repetition.

    spelling      half of the letters follow from the letter before the last, by a rule that holds for the whole text
    repetition    the text consists of strings, each written twice, one after the other

Spelling takes the previous letter, as it does in real text. Repetition takes the last occurrence of the current letter
and what followed it: no letter is more likely than another, and the strings differ in length, so that counting back
does not find the first copy.
"""

from __future__ import annotations

import random
import string

ALPHABET = string.ascii_lowercase
SHORTEST, LONGEST = 6, 16
SPELLED = 0.5  # the share of letters that follow the rule


def repeated_strings(characters: int, seed: int = 0) -> str:
    """At least so many characters; a string has SHORTEST to LONGEST of them before it is repeated."""
    generator = random.Random(seed)
    order = generator.sample(ALPHABET, len(ALPHABET))
    next_of = dict(zip(order, [*order[1:], order[0]], strict=True))
    pieces: list[str] = []
    written = 0
    while written < characters:
        letters: list[str] = []
        for _ in range(generator.randint(SHORTEST, LONGEST)):
            spelled = len(letters) > 1 and generator.random() < SPELLED
            letters.append(next_of[letters[-2]] if spelled else generator.choice(ALPHABET))
        pieces += ["".join(letters)] * 2
        written += 2 * len(letters)
    return "".join(pieces)
