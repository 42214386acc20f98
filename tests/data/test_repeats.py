"""A text of strings that are each written twice, with a rule for half of the letters."""

from __future__ import annotations

from collections import Counter

from attnlab.data.text.repeats import ALPHABET, LONGEST, SHORTEST, repeated_strings


def test_it_consists_of_strings_written_twice() -> None:
    text = repeated_strings(20_000, seed=1)
    assert text == repeated_strings(20_000, seed=1) != repeated_strings(20_000, seed=2)
    assert set(text) == set(ALPHABET) and 20_000 <= len(text) <= 20_000 + 2 * LONGEST
    ends = {0}  # where a string can begin, by any way to cut the text before it
    for start in range(len(text)):
        if start in ends:
            sizes = range(SHORTEST, LONGEST + 1)
            ends |= {start + 2 * k for k in sizes if text[start : start + k] == text[start + k : start + 2 * k]}
    assert len(text) in ends


def test_letters_follow_from_the_one_before_the_last_and_not_from_the_last() -> None:
    text = repeated_strings(50_000, seed=1)

    def surest(lag: int) -> list[float]:
        """For every letter, the share of the letter that most often comes so many places after it."""
        pairs = Counter(zip(text, text[lag:], strict=False))
        return [max(pairs[a, b] for b in ALPHABET) / text.count(a) for a in ALPHABET]

    assert min(surest(2)) > 0.35 and max(surest(1)) < 0.2
    counts = Counter(text)
    assert max(counts.values()) / min(counts.values()) < 1.3
