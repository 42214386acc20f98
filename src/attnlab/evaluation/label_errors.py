"""Training rows whose label is likely wrong, as TF-IDF with logistic regression sees those it did not learn from."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlab.data.tasks.folds import fold_of
from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.splits import same_text
from attnlab.stats.label_errors import LikelyError, likely_errors

FOLDS = 3
FEWEST = 60
"""Rows below which the classifier has learned too little to doubt a label."""
MOST = 5_000
"""Rows that are looked at: of more, as many drawn at random."""
FEATURES = 10_000
"""Of each kind."""
INVERSE_DECAY = 10.0
HOW = (
    "TF-IDF with logistic regression, which did not learn from the row in question, gives another class at least the "
    "probability that the rows of that class have on average (confident learning). Some of these labels are right: "
    "read them before you change them."
)


@dataclass(frozen=True)
class Suspects:
    """Rows of the training split with the class they seem to belong to, the most certain first."""

    examples: list[LabelledText]
    found: list[LikelyError]
    looked_at: int
    classes: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "text": example.text,
                **({"pair": example.pair} if example.pair is not None else {}),
                "label": self.classes[example.label],
                "likely": self.classes[error.likely],
                "probability": round(error.probability, 4),
                "label_probability": round(error.label_probability, 4),
            }
            for example, error in zip(self.examples, self.found, strict=True)
        ]

    def sentence(self) -> str:
        if not self.found:
            return f"no label of the {self.looked_at:,} training rows looked at is likely wrong."
        are = "1 label" if len(self.found) == 1 else f"{len(self.found):,} labels"
        return f"{are} of the {self.looked_at:,} training rows looked at may be wrong."


def find_suspects(data: LabelledSet, seed: int = 0) -> Suspects | None:
    """None where there are too few rows, or too few different texts, to say."""
    examples = data.splits["train"]
    if len(examples) > MOST:
        chosen = np.sort(np.random.default_rng(seed).choice(len(examples), MOST, replace=False))
        examples = [examples[place] for place in chosen]
    counts = np.bincount([example.label for example in examples])
    texts = len(set(map(same_text, examples)))
    if len(examples) < FEWEST or texts < 2 * FOLDS or counts.max() < FOLDS or (counts > 0).sum() < 2:
        return None
    labels = np.array([example.label for example in examples])
    found = likely_errors(out_of_fold(examples, labels, len(data.classes), seed), labels)
    return Suspects([examples[error.place] for error in found], found, len(examples), data.classes)


def out_of_fold(
    examples: Sequence[LabelledText], labels: NDArray[np.int64], classes: int, seed: int
) -> NDArray[np.float64]:
    """(N, K): the probabilities of each row by a classifier that learned from the other folds."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    rows = word_vectors(examples)
    folds = np.array(fold_of(examples, FOLDS, seed))
    probabilities = np.zeros((len(examples), classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near enough to rank rows
        for fold in range(1, FOLDS + 1):
            learned, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            if len(np.unique(labels[learned])) < 2:
                continue
            model = LogisticRegression(C=INVERSE_DECAY, tol=1e-3, max_iter=60).fit(rows[learned], labels[learned])
            probabilities[np.ix_(held, model.classes_)] = model.predict_proba(rows[held])
    return probabilities


def word_vectors(examples: Sequence[LabelledText]) -> Any:
    """TF-IDF of words and of pieces of words, a sparse matrix (N, F); a pair is read as one text."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [" ".join(filter(None, (example.text, example.pair))) for example in examples]
    least = 2 if len(texts) >= 1000 else 1
    kinds: tuple[dict[str, Any], ...] = (
        {"analyzer": "word", "token_pattern": r"(?u)\b\w+\b"},
        {"analyzer": "char_wb", "ngram_range": (2, 4)},
    )
    blocks = []
    for kind in kinds:
        try:
            blocks.append(
                TfidfVectorizer(sublinear_tf=True, min_df=least, max_features=FEATURES, **kind).fit_transform(texts)
            )
        except ValueError:  # no text has a word of this kind
            continue
    return csr_matrix(hstack(blocks)) if blocks else csr_matrix((len(texts), 1))
