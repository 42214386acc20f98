"""What a call is handed where a path is expected, as the content of a file.

Texts are a list, an array or a Series. Pairs (question and answer, text and label) are a list of pairs, an array (N, 2)
or a DataFrame with these two columns; labelled pairs of texts are triples.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.api.arguments import is_path
from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.runs.folder import INPUTS, read_record

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    Examples = os.PathLike[str] | ArrayLike | Sequence[tuple[object, ...]]


def content_of(name: str, value: object, stream: bool = False, labelled: bool = False) -> tuple[str, str]:
    """The ending and the text of a file with these texts or pairs; a `stream` may have several lines per text."""
    rows = _rows(value)
    if labelled and rows and all(isinstance(row, tuple | list) and len(row) in (2, 3) for row in rows):
        return ".jsonl", "".join(_labelled_line(name, row) for row in rows)
    if not labelled and rows and all(isinstance(row, str) for row in rows):
        if not stream and any("\n" in row for row in rows):
            raise UserError(f"{name}: a text contains a new line; every text is one document on one line.")
        return ".txt", "\n".join(rows) + "\n"
    if not labelled and rows and all(map(_is_pair, rows)):
        if any("\n" in text or "\t" in text for pair in rows for text in pair):
            raise UserError(f"{name}: a question or an answer contains a tab or a new line: replace it by a space.")
        return ".tsv", "".join(f"{question}\t{answer}\n" for question, answer in rows)
    expected = "a list of (text, label) pairs" if labelled else "a list of texts or a list of (question, answer) pairs"
    got = "an empty list" if rows == [] and isinstance(value, list) else type(value).__name__
    raise UserError(f"{name}: expected a path{' or' if labelled else ','} {expected}, got {got}.")


def as_file(run: Path, name: str, value: object) -> Path | None:
    """The path that was given. Objects become a file in the folder of the run, which results can name."""
    if value is None or is_path(value):
        return None if value is None else Path(value)  # type: ignore[arg-type]
    from attnlab.models.pretrained.tuned import is_export

    kind = "classify" if is_export(run) else read_record(run)["kind"]
    ending, text = content_of(name, value, stream=kind == "language", labelled=kind == "classify")
    checksum = hashlib.sha256(text.encode()).hexdigest()[:8]
    file = run / "evaluations" / INPUTS / f"{name}-{checksum}{ending}"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)
    return file


def _rows(value: Any) -> list[Any]:
    """The rows of a list, an array, a Series or a DataFrame; none of what has no order."""
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if getattr(value, "ndim", 0):
        value = value.tolist()
    if not isinstance(value, Iterable) or isinstance(value, Mapping | Set | str | bytes):
        return []
    rows = list(value)
    return [row[0] for row in rows] if all(isinstance(row, list) and len(row) == 1 for row in rows) else rows


def _is_pair(row: object) -> bool:
    return isinstance(row, tuple | list) and len(row) == 2 and all(isinstance(text, str) for text in row)


def _labelled_line(name: str, row: Sequence[Any]) -> str:
    """One line of a labelled file, with columns that are found by their names."""
    from attnlab.data.tasks.labelled import label_word

    *texts, label = row
    word = label_word(label.item() if hasattr(label, "item") else label)
    if word is None or not all(isinstance(text, str) for text in texts):
        raise UserError(f"{name}: {row!r:.60} is not a text with its label.")
    return json.dumps({**dict(zip(("text", "pair"), texts, strict=False)), "label": word}, ensure_ascii=False) + "\n"
