"""A WordPiece vocabulary learned from text.

Start from characters; join the most frequent pair of neighbours within words; repeat until the vocabulary is
full. This is byte-pair counting in WordPiece's notation, as the `tokenizers` library trains it.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.wordpiece import INSIDE, LONGEST_WORD
from attnlab.data.tokenizers.wordpiece_text import Words

ALPHABET = 1000  # characters, the most frequent
Pair = tuple[str, str]


def learn_pieces(texts: Iterable[str], size: int, words: Words) -> list[str]:
    """The pieces, characters first; fewer than `size` if no further pair occurs twice."""
    counts = count_words(texts, words)
    if not counts:
        raise UserError("the text has no words to learn a vocabulary from: give a longer text.")
    letters: Counter[str] = Counter()
    for word, count in counts.items():
        for c in word:
            letters[c] += count
    kept = {c for c, _ in letters.most_common(ALPHABET)}
    spelled = {word: [word[0], *(INSIDE + c for c in word[1:])] for word in counts if kept.issuperset(word)}
    pieces = sorted({piece for spelling in spelled.values() for piece in spelling})
    if len(pieces) > size:
        raise UserError(
            f"a vocabulary of {size} pieces besides the special ones is too small: "
            f"the text has {len(pieces)} different characters."
        )
    return [*pieces, *_joined(spelled, counts, size - len(pieces), set(pieces))]


def count_words(texts: Iterable[str], words: Words) -> Counter[str]:
    chunks: Counter[str] = Counter()
    for text in texts:
        chunks.update(words.chunks(text))
    counts: Counter[str] = Counter()
    for chunk, count in chunks.items():
        for word in words.split(chunk):
            if len(word) <= LONGEST_WORD:
                counts[word] += count
    return counts


def _joined(spelled: dict[str, list[str]], counts: Counter[str], room: int, known: set[str]) -> list[str]:
    pairs: Counter[Pair] = Counter()
    where: defaultdict[Pair, set[str]] = defaultdict(set)
    for word, spelling in spelled.items():
        for pair in pairwise(spelling):
            pairs[pair] += counts[word]
            where[pair].add(word)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    new: list[str] = []
    while heap and len(new) < room:
        count, pair = heapq.heappop(heap)
        if -count != pairs[pair]:
            continue  # an outdated entry: the pair was pushed again when its count changed
        if -count < 2:
            break
        piece = pair[0] + pair[1].removeprefix(INSIDE)
        if piece not in known:  # different pairs can join to the same piece
            known.add(piece)
            new.append(piece)
        changes: Counter[Pair] = Counter()
        for word in where.pop(pair):
            spelled[word], moved = _join(spelled[word], pair, piece)
            for other, times in moved:
                changes[other] += times * counts[word]
                if times > 0:
                    where[other].add(word)
        del pairs[pair]
        for other, change in changes.items():
            if other != pair:
                pairs[other] += change
                heapq.heappush(heap, (-pairs[other], other))
    return new


def _join(spelling: list[str], pair: Pair, piece: str) -> tuple[list[str], list[tuple[Pair, int]]]:
    """The word with every occurrence of the pair joined, and the pairs of neighbours this adds (1) and removes (-1)."""
    first, second = pair
    out: list[str] = []
    moved: list[tuple[Pair, int]] = []
    at, last = 0, len(spelling) - 1
    while at <= last:
        if at < last and spelling[at] == first and spelling[at + 1] == second:
            if out:
                moved += [((out[-1], first), -1), ((out[-1], piece), 1)]
            if at + 1 < last:
                moved += [((second, spelling[at + 2]), -1), ((piece, spelling[at + 2]), 1)]
            out.append(piece)
            at += 2
        else:
            out.append(spelling[at])
            at += 1
    return out, moved
