"""Plain text files: whole, by lines, or as a corpus of one document per line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from attnlab.base.errors import UserError


def read_lines(path: Path) -> list[tuple[int, str]]:
    """All lines of a file that are not blank, each with its number."""
    return numbered_lines(read_text(path))


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """All lines that are not blank, each with its number, counted from 1.

    Lines end at a newline (or a Windows carriage return and newline) only: the other separators of Unicode are
    characters of the text. Characters are not changed.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def read_text(path: Path) -> str:
    """The whole text of a file, which must not be blank."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: check the name.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give a text file.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        text = raw.decode("utf-8-sig")  # without a byte order mark
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line} is not UTF-8: save the file as UTF-8.") from None
    if not text.strip():
        raise UserError(f"{path} is empty: give a file with at least one line of text.")
    return text


Document = TypeVar("Document")


def read_corpus(path: Path) -> list[str]:
    """The documents of the file in order; blank lines are skipped."""
    return [line for _, line in read_lines(path)]


def read_prose(path: Path) -> list[str]:
    """The same for text that is read as words; a null character means a binary file."""
    documents = read_corpus(path)
    if any("\0" in document for document in documents):
        raise UserError(f"{path} is a binary file: give UTF-8 text, one document per line.")
    return documents


def split_documents(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """The documents for training and a random share for evaluation, both in their order."""
    order = np.random.default_rng([seed, 1]).permutation(len(documents))
    held_out = set(order[: round(share * len(documents))].tolist())
    train = [document for n, document in enumerate(documents) if n not in held_out]
    return train, [documents[n] for n in sorted(held_out)]
