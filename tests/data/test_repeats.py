"""A text of strings that are each written several times."""

from __future__ import annotations

from collections import Counter

from attnlab.data.text.repeats import ALPHABET, COPIES, LONGEST, SHORTEST, repeated_strings


def test_it_consists_of_strings_written_several_times() -> None:
    text = repeated_strings(20_000, seed=1)
    assert text == repeated_strings(20_000, seed=1) != repeated_strings(20_000, seed=2)
    assert set(text) == set(ALPHABET) and 20_000 <= len(text) <= 20_000 + COPIES[1] * LONGEST
    ends = {0}  # where a string can begin, by any way to cut the text before it
    for start in range(len(text)):
        if start in ends:
            for size in range(SHORTEST, LONGEST + 1):
                piece = text[start : start + size]
                copies = range(COPIES[0], COPIES[1] + 1)
                ends |= {start + n * size for n in copies if text[start : start + n * size] == piece * n}
    assert len(text) in ends


def test_no_character_follows_from_another_at_a_fixed_distance() -> None:
    text = repeated_strings(300_000, seed=1)
    for distance in (1, 2, 6, LONGEST):
        pairs = Counter(zip(text, text[distance:], strict=False))
        others = [pairs[a, b] / text.count(a) for a in ALPHABET for b in ALPHABET if a != b]
        assert max(others) < 0.05
    counts = Counter(text)
    assert max(counts.values()) / min(counts.values()) < 1.3
