"""The embedded sentiment set: balanced, varied, and nothing in it twice."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

from attnlab.data.tasks.catalog import SENTIMENT_LABELS, load_sentiment

SPLITS = load_sentiment()
EXAMPLES = [example for examples in SPLITS.values() for example in examples]


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w']+", text.lower()))


def test_sizes_and_balance_are_exact() -> None:
    assert {split: len(examples) for split, examples in SPLITS.items()} == {"train": 360, "dev": 120, "test": 120}
    for examples in SPLITS.values():
        assert Counter(example.label for example in examples) == dict.fromkeys(SENTIMENT_LABELS, len(examples) // 2)


def test_no_two_sentences_are_nearly_the_same() -> None:
    bags = [(example.text, words(example.text)) for example in EXAMPLES]
    for (one, first), (other, second) in combinations(bags, 2):
        assert len(first & second) < 0.5 * len(first | second), f"{one!r} and {other!r} are too much alike"


def test_lengths_vary_and_do_not_give_the_label_away() -> None:
    lengths = {label: [len(e.text.split()) for e in EXAMPLES if e.label == label] for label in SENTIMENT_LABELS}
    for counts in lengths.values():
        assert min(counts) >= 3
        assert max(counts) <= 35
        assert sum(count <= 6 for count in counts) >= 15
        assert sum(count >= 24 for count in counts) >= 6
    means = [sum(counts) / len(counts) for counts in lengths.values()]
    assert abs(means[0] - means[1]) < 1.5


def test_no_single_word_gives_the_label_away() -> None:
    """A rule on one word must not solve the set."""
    bags = {label: [words(e.text) for e in EXAMPLES if e.label == label] for label in SENTIMENT_LABELS}
    for word in frozenset().union(*bags["positive"], *bags["negative"]):
        positive, negative = (sum(word in bag for bag in bags[label]) for label in ("positive", "negative"))
        assert abs(positive - negative) < 0.2 * len(EXAMPLES) / 2, word


def test_texts_are_clean_lines() -> None:
    for text, _ in EXAMPLES:
        assert text == text.strip()
        assert text.isascii() or set(text) - set(map(chr, range(128))) <= {"é"}
        assert "  " not in text
        assert text[0].isupper() and text[-1] in ".?!"
