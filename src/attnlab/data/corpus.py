"""A corpus: plain text, one document a line."""

from __future__ import annotations

from pathlib import Path

from attnlab.data.lines import read_lines


def read_corpus(path: Path) -> list[str]:
    """The documents of the file in order; blank lines, such as the one after the last newline, are none."""
    return [line for _, line in read_lines(path)]
