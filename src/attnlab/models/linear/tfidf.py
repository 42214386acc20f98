"""Texts as TF-IDF vectors of words and characters.

    x_t = (1 + log count(t)) · (log((1 + N) / (1 + N_t)) + 1), scaled to length 1 over words and over characters

Words and pairs of words, and pieces of 2 to 4 characters within words. Of a pair of texts there are three such vectors
with the same vocabulary: the first text, the second, and the smaller of both, which is what they share.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.base.errors import UserError
from attnlab.data.tasks.labelled import LabelledText

BLOCKS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b", "max_features": 30_000},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4), "max_features": 30_000},
}
DIGITS = 6  # of a frequency
ONCE_BELOW = 1000
"""With fewer texts a word counts even if only one of them has it."""


class Tfidf:
    """The vocabulary of the training texts, and how often each entry of it occurs."""

    def __init__(self, vocabulary: dict[str, list[str]], idf: dict[str, np.ndarray], paired: bool) -> None:
        self.vocabulary, self.idf, self.paired = vocabulary, idf, paired
        self._blocks: dict[str, Any] = {}

    @classmethod
    def of(cls, examples: Sequence[LabelledText]) -> Tfidf:
        """From the training texts."""
        texts = [text for example in examples for text in (example.text, example.pair) if text is not None]
        found = cls({}, {}, bool(examples) and examples[0].pair is not None)
        for name, settings in BLOCKS.items():
            vectorizer = _vectorizer(settings | {"min_df": 1 if len(texts) < ONCE_BELOW else 2})
            try:
                vectorizer.fit(texts)
            except ValueError:  # no text has a word of this kind
                found.vocabulary[name], found.idf[name] = [], np.zeros(0)
                continue
            found.vocabulary[name] = vectorizer.get_feature_names_out().tolist()
            found.idf[name] = vectorizer.idf_.round(DIGITS)
        if not found.width:
            raise UserError("no training text has a word or a character that --model tfidf could count.")
        return found

    @property
    def width(self) -> int:
        """Entries of the vector of a text, or of a pair."""
        return sum(map(len, self.vocabulary.values())) * (3 if self.paired else 1)

    def __call__(self, examples: Sequence[LabelledText]) -> Any:
        """A sparse matrix (N, F)."""
        from scipy.sparse import csr_matrix, hstack

        first = self._texts([example.text for example in examples])
        if not self.paired:
            return first
        second = self._texts([example.pair or "" for example in examples])
        return csr_matrix(hstack([first, second, first.minimum(second)]))

    def _texts(self, texts: Sequence[str]) -> Any:
        from scipy.sparse import csr_matrix, hstack

        blocks = [self._block(name).transform(texts) for name, entries in self.vocabulary.items() if entries]
        return csr_matrix(hstack(blocks))

    def _block(self, name: str) -> Any:
        if name not in self._blocks:
            entries = self.vocabulary[name]
            vectorizer = _vectorizer(BLOCKS[name] | {"vocabulary": {entry: n for n, entry in enumerate(entries)}})
            vectorizer.idf_ = self.idf[name]
            self._blocks[name] = vectorizer
        return self._blocks[name]

    def to_json(self) -> str:
        content = {"paired": self.paired, "vocabulary": self.vocabulary}
        content["idf"] = {name: values.tolist() for name, values in self.idf.items()}
        return json.dumps(content, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Tfidf:
        """Raises ValueError, KeyError or TypeError for what is no vocabulary."""
        content = json.loads(text)
        vocabulary, paired = content["vocabulary"], content["paired"]
        idf = {name: np.asarray(values, float) for name, values in content["idf"].items()}
        if set(vocabulary) != set(BLOCKS) or any(len(idf[name]) != len(vocabulary[name]) for name in BLOCKS):
            raise ValueError("the vocabulary and its frequencies do not belong together")
        if not all(isinstance(entry, str) for entries in vocabulary.values() for entry in entries):
            raise TypeError("the entries of a vocabulary must be texts")
        return cls({name: vocabulary[name] for name in BLOCKS}, idf, bool(paired))


def _vectorizer(settings: dict[str, Any]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, lowercase=True, dtype=np.float64, **settings)
