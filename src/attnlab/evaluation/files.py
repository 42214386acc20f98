"""The files of an evaluation: predictions with one answer per line, and a table of all answers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.base.files import check_new_folder, write_text
from attnlab.base.leftovers import temporary
from attnlab.evaluation.abstaining import Abstaining
from attnlab.evaluation.answers import AnsweredQuestion
from attnlab.runs import fresh_path
from attnlab.runs.links import must_lead_inside

EVALUATIONS = "evaluations"


def predictions_text(answered: Sequence[AnsweredQuestion], abstaining: Abstaining) -> str:
    """One line per question, in order."""
    return "".join(f"{_one_line(abstaining.text(each.answer, each.name_probability))}\n" for each in answered)


def answers_table(answered: Sequence[AnsweredQuestion]) -> str:
    """Every answer with its confidence and its trace, tab-separated."""
    header = ["question", "expected", "answered", "confidence", "name probability", "origin"]
    header += ["lines naming the person", "with the answer"]
    rows = [
        [
            each.question,
            each.expected or "",
            each.answer.text,
            f"{each.answer.confidence:.4f}",
            "" if each.name_probability is None else f"{each.name_probability:.3g}",
            each.trace.kind if each.trace else "",
            *_line_numbers(each),
        ]
        for each in answered
    ]
    return "".join("\t".join(map(_one_line, row)) + "\n" for row in [header, *rows])


def _line_numbers(each: AnsweredQuestion) -> list[str]:
    if each.trace is None:
        return ["", ""]
    naming = (line.number for line in each.trace.lines)
    return [",".join(map(str, naming)), ",".join(map(str, each.trace.with_answer))]


def _one_line(text: str) -> str:
    return re.sub(r"[\t\r\n]", " ", text)


def write_folder(folder: Path, fill: Callable[[Path], None]) -> None:
    """Write a folder completely or not at all: it is filled under a temporary name and renamed at the end."""
    partial = temporary(folder, "partial")
    try:
        partial.mkdir(parents=True)
        fill(partial)
        partial.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_places(run: Path, outputs: Path | None, out: Path | None) -> None:
    """Refuse places that cannot take the results, before any work is done."""
    if outputs is not None:
        check_writable(outputs)
    if out is not None:
        check_new_folder(out)
    else:
        must_lead_inside(run / EVALUATIONS, run)


def new_folder(run: Path, label: str) -> Path:
    """Where an evaluation goes if nobody says where: a folder of its own in the run."""
    return fresh_path(run / EVALUATIONS, label)


def write_file(path: Path, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}.") from error


def check_writable(path: Path, option: str = "--outputs") -> None:
    """Refuse an output file that cannot be written, before any work is done."""
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file.")
    if not path.parent.is_dir():
        raise UserError(f"{option} {path}: the folder {path.parent} does not exist: create it first.")
