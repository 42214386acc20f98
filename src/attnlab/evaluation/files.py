"""An evaluation as files: predictions, one answer a line; results.json; one page with its figures."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.evaluation.results import Answered


def predictions(answered: Sequence[Answered], abstain_below: float | None) -> str:
    """One line a question, in order."""
    return "".join(f"{_one_line(each.said.unless_below(abstain_below or 0.0))}\n" for each in answered)


def table(answered: Sequence[Answered]) -> str:
    """Every answer with its confidence and where it can be from, tab-separated."""
    header = ["question", "expected", "answered", "confidence", "origin", "lines naming the person", "with the answer"]
    rows = [
        [
            each.question,
            each.expected or "",
            each.said.text,
            f"{each.said.confidence:.4f}",
            each.trace.kind if each.trace else "",
            *_numbers(each),
        ]
        for each in answered
    ]
    return "".join("\t".join(map(_one_line, row)) + "\n" for row in [header, *rows])


def _numbers(each: Answered) -> list[str]:
    if each.trace is None:
        return ["", ""]
    named = (line.number for line in each.trace.lines)
    return [",".join(map(str, named)), ",".join(map(str, each.trace.holding))]


def _one_line(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder whole or not at all: it is filled beside its place and takes its name at the end."""
    partial = folder.parent / f".{folder.name}.partial-{os.getpid()}"
    try:
        partial.mkdir(parents=True)
        fill(partial)
        partial.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_results(folder: Path, found: Mapping[str, Any]) -> None:
    write_text(folder / "results.json", json.dumps(_plain(found), indent=1, ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    """JSON has no NaN: null stands for a share of nothing."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def write_file(path: Path, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}.") from error


def writable(path: Path) -> None:
    """Refuse a file that could not be written, before any work is done."""
    if path.is_dir():
        raise UserError(f"--outputs {path} is a folder: give the name of a file.")
    if not path.parent.is_dir():
        raise UserError(f"--outputs {path}: there is no folder {path.parent}; make it first.")
