"""A user's own attention in a run folder: the file it was trained with, or the run's copy of it.

attention.py     the code of the attention, with its checksum in run.json
attention.txt    the text of a class that cannot be executed on its own: the class must be handed in again
"""

from __future__ import annotations

from pathlib import Path

from attnlab.base import console
from attnlab.runs.settings import must_be_unchanged

COPY = "attention.py"
TEXT = "attention.txt"


def own_attention(run: Path, name: str) -> str:
    """Where the attention of a run is found: under its name, or in the run if its file is gone or has changed."""
    copy = next((file for file in (run / COPY, run / "pretrain" / COPY) if file.is_file()), None)
    if not name.endswith(".py") or copy is None or same_code(name, str(copy)):
        return name
    must_be_unchanged(copy.parent, COPY)
    what = "has changed since" if Path(name).is_file() else "is gone since"
    console.warn(f"{name} {what} {run} was trained with it: its own copy, {copy}, is used.")
    return str(copy.absolute())


def same_code(first: str, second: str) -> bool:
    """Whether two names are one, or those of two files with the same content."""
    files = [Path(name) for name in (first, second) if name.endswith(".py")]
    if first == second or len(files) < 2 or not all(file.is_file() for file in files):
        return first == second
    return files[0].read_bytes() == files[1].read_bytes()
