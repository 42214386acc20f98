"""Plain text files: whole, by lines, or as a corpus of one document per line."""

from __future__ import annotations

from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.base.files import read_text


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


def read_corpus(path: Path) -> list[str]:
    """The documents of the file in order; blank lines are skipped."""
    return [line for _, line in read_lines(path)]


def read_prose(path: Path) -> list[str]:
    """The same for text that is read as words; a null character means a binary file."""
    documents = read_corpus(path)
    if any("\0" in document for document in documents):
        raise UserError(f"{path} is a binary file: give UTF-8 text, one document per line.")
    return documents
