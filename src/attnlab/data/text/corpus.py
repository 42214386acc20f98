"""A corpus: plain text, one document a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from attnlab.base.errors import UserError
from attnlab.data.text.lines import read_lines

Document = TypeVar("Document")


def read_corpus(path: Path) -> list[str]:
    """The documents of the file in order; blank lines, such as the one after the last newline, are none."""
    return [line for _, line in read_lines(path)]


def read_prose(path: Path) -> list[str]:
    """The same for text that is read as words, where a null character means a file of another kind."""
    documents = read_corpus(path)
    if any("\0" in document for document in documents):
        raise UserError(f"{path} is a binary file: give text in UTF-8, a document a line.")
    return documents


def keep_aside(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """Those to train on and a share of others to measure on, both in their order."""
    order = np.random.default_rng([seed, 1]).permutation(len(documents))
    kept = set(order[: round(share * len(documents))].tolist())
    train = [document for n, document in enumerate(documents) if n not in kept]
    return train, [documents[n] for n in sorted(kept)]
