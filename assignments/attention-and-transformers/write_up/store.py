"""The result files of a folder by name, and a Markdown table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Results = Mapping[str, Any]
TINY = "*Tiny sizes, which only show that it runs.*"


class Store:
    """The result files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, name: str) -> list[dict[str, Any]]:
        """The results of this name, none or one; of a name with a *, one per file in their order."""
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(self.folder.glob(f"{name}.json"))]


def table(header: Iterable[str], *rows: Iterable[object]) -> Iterator[str]:
    titles = list(header)
    for cells in (titles, ["---"] * len(titles), *rows):
        yield f"| {' | '.join(map(str, cells))} |"


def lead(results: Results, sentence: str) -> Iterator[str]:
    """A sentence above a table, with a warning where the results only show that it runs."""
    yield f"{TINY} {sentence}" if results["quick"] else sentence
    yield ""
