"""Phrases worth hiding: names, places and numbers, which a reader must know and cannot guess.

After salient span masking (Guu et al. 2020, arXiv:2002.08909; Roberts et al. 2020, arXiv:2002.08910), which finds
names and dates with a tagger. Here a phrase is a run of words that begin with a capital letter or a digit. The
phrase at the start of a document names its topic and stays; so does a phrase whose words all occur elsewhere in the
document, because it could be copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.data.tokenizers.vocabulary import Vocabulary


@dataclass(frozen=True)
class Word:
    """A word of a document and the range of its tokens."""

    text: str
    start: int
    end: int

    @property
    def salient(self) -> bool:
        return self.text[0].isupper() or self.text[0].isdigit()


def words_of(tokens: Sequence[str], level: str) -> list[Word]:
    """The words and marks of a tokenised document; spaces between characters belong to no word."""
    if level == "words":
        return [Word(token, n, n + 1) for n, token in enumerate(tokens)]
    words: list[Word] = []
    for n, token in enumerate(tokens):
        if token.isspace():
            continue
        before = words[-1] if words else None
        if before and before.end == n and token.isalnum() and before.text[-1].isalnum():
            words[-1] = Word(before.text + token, before.start, n + 1)
        else:
            words.append(Word(token, n, n + 1))
    return words


def find_phrases(vocabulary: Vocabulary, document: Sequence[int]) -> list[tuple[int, int]]:
    """The phrases worth hiding, as (first token, token after the last)."""
    words = words_of([vocabulary.tokens[id_] for id_ in document], vocabulary.level)
    in_document = Counter(word.text for word in words)
    spans: list[tuple[int, int]] = []
    for run in _runs(words):
        inside = Counter(word.text for word in run)
        copied = all(in_document[text] > count for text, count in inside.items())
        if run[0].start > 0 and not copied:
            spans.append((run[0].start, run[-1].end))
    return spans


def title_length(vocabulary: Vocabulary, document: Sequence[int]) -> int:
    """The number of tokens of the phrase that begins a document and names its topic; 0 if it begins otherwise."""
    runs = _runs(words_of([vocabulary.tokens[id_] for id_ in document], vocabulary.level))
    return runs[0][-1].end if runs and runs[0][0].start == 0 else 0


def _runs(words: Sequence[Word]) -> list[list[Word]]:
    """Runs of neighbouring salient words."""
    runs: list[list[Word]] = []
    previous = None
    for word in words:
        if word.salient:
            if previous is not None and previous.salient:
                runs[-1].append(word)
            else:
                runs.append([word])
        previous = word
    return runs
