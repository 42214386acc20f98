"""A corpus: plain text, one document a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from attnlab.data.lines import read_lines

Document = TypeVar("Document")


def read_corpus(path: Path) -> list[str]:
    """The documents of the file in order; blank lines, such as the one after the last newline, are none."""
    return [line for _, line in read_lines(path)]


def keep_aside(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """Those to train on and a share of others to measure on, both in their order."""
    order = np.random.default_rng([seed, 1]).permutation(len(documents))
    kept = set(order[: round(share * len(documents))].tolist())
    train = [document for n, document in enumerate(documents) if n not in kept]
    return train, [documents[n] for n in sorted(kept)]
