"""Predictions for a file of any size: a part of the rows at a time, each kept on disk until all are there.

    .NAME.partial/about.json         what is predicted, by what
    .NAME.partial/00000.jsonl, ...   the predictions of a part, one object per line

The parts become the file, in the format of its ending, at the end. The same command continues after the last part if
it was stopped in between.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import sha256, unlike, write_json, write_text
from attnlab.data.tasks.prediction_inputs import Given, InputFile
from attnlab.evaluation.prediction_formats import write_rows
from attnlab.models.pretrained.tuned import ABOUT, TunedClassifier
from attnlab.runs.record import RECORD

PART = 2_048
"""Rows of a part."""


@dataclass(frozen=True)
class Written:
    """What was predicted."""

    count: int
    right: int
    labelled: int
    cut: int
    resumed: int
    """Rows whose predictions were there already."""


def predict_file(
    trained: TunedClassifier,
    file: InputFile,
    out: Path,
    keep: bool = False,
    ending: str = ".jsonl",
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Written:
    """Predict all rows of a file into another; `keep`: with all its columns, not with text and label alone.

    `ending` names the format.
    """
    parts = _Parts(out, _about(trained, file, keep))
    source = iter(file)
    done = resumed = sum(1 for _ in islice(source, parts.count))
    on_progress(done)
    while given := list(islice(source, PART)):
        encoded = trained.encode([row.example for row in given], f"{file.head.path}, ")
        shares = trained.logits(encoded).softmax(-1).tolist()
        chosen = [trained.classes[max(range(len(each)), key=each.__getitem__)] for each in shares]
        rows = [
            prediction(trained.classes, row, each, file.labelled > 0, keep)
            for row, each in zip(given, shares, strict=True)
        ]
        parts.add(rows, _tally(trained.classes, given, chosen, encoded.cut))
        done += len(given)
        on_progress(done)
    write_rows(out, parts.rows, ending)
    parts.remove()
    return Written(done, parts.tally["right"], parts.tally["labelled"], parts.tally["cut"], resumed)


def _tally(classes: tuple[str, ...], given: Sequence[Given], chosen: Sequence[str], cut: int) -> Counter[str]:
    """What is counted of a part: its rows, those with a label, those that are right, those that were cut."""
    labelled = [(row.example.label, word) for row, word in zip(given, chosen, strict=True) if row.example.label >= 0]
    right = sum(classes[label] == predicted for label, predicted in labelled)
    return Counter(rows=len(given), labelled=len(labelled), right=right, cut=cut)


def prediction(
    classes: tuple[str, ...], given: Given, shares: list[float], labelled: bool, keep: bool = False
) -> dict[str, Any]:
    """A row of the output; the columns of the input come first if they are kept."""
    best = max(range(len(shares)), key=shares.__getitem__)
    example = given.example
    row: dict[str, Any] = dict(given.fields) if keep else {"text": example.text}
    if not keep and example.pair is not None:
        row["pair"] = example.pair
    if not keep and labelled:
        row["label"] = classes[example.label] if example.label >= 0 else None
    rounded = {name: round(share, 6) for name, share in zip(classes, shares, strict=True)}
    found = {"predicted": classes[best], "probability": rounded[classes[best]], "probabilities": rounded}
    return row | {unlike(name, given.fields if keep else ()): value for name, value in found.items()}


def _about(trained: TunedClassifier, file: InputFile, keep: bool) -> dict[str, Any]:
    made = next((path for path in (trained.run / RECORD, trained.run / ABOUT) if path.is_file()), None)
    return {
        "classifier": str(trained.run.absolute()),
        "record": sha256(made) if made is not None else "",
        "file": str(file.head.path.absolute()),
        "sha256": sha256(file.head.path) if file.head.path.is_file() else "",
        "rows": file.count,
        "keep": keep,
        "part": PART,
    }


def partial_folder(out: Path) -> Path:
    return out.with_name(f".{out.name}.partial")


def check_target(out: Path) -> None:
    """Raise, before any work is done, where the predictions could not be written."""
    folder = partial_folder(out)
    try:
        folder.mkdir(exist_ok=True)
        write_text(folder / "writable", "")
        (folder / "writable").unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise UserError(f"cannot write to {out.parent or '.'}: {error.strerror or error}.") from None


class _Parts:
    """The predictions so far."""

    def __init__(self, out: Path, about: dict[str, Any]) -> None:
        self.folder = partial_folder(out)
        stored = self._stored()
        if stored is not None and stored != json.loads(json.dumps(about)):
            console.warn(f"{self.folder} has a part of other predictions: it is begun anew.")
            shutil.rmtree(self.folder)
            stored = None
        if stored is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            write_json(self.folder / "about.json", about)
        self.number = 0
        """Of parts."""
        self.tally: Counter[str] = Counter()
        while self._path(self.number).is_file():
            self.tally.update(json.loads(next(self._lines(self.number))))
            self.number += 1

    @property
    def count(self) -> int:
        return self.tally["rows"]

    def _stored(self) -> Any:
        try:
            return json.loads((self.folder / "about.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:05}.jsonl"

    def _lines(self, number: int) -> Iterator[str]:
        with self._path(number).open(encoding="utf-8", newline="\n") as file:
            yield from file

    def add(self, rows: list[dict[str, Any]], tally: Counter[str]) -> None:
        """Write the next part, of which the first line is its tally."""
        lines = [json.dumps(tally), *(json.dumps(row, default=str) for row in rows)]
        write_text(self._path(self.number), "".join(f"{line}\n" for line in lines))
        self.number += 1
        self.tally.update(tally)

    def rows(self) -> Iterator[dict[str, Any]]:
        for number in range(self.number):
            for line in islice(self._lines(number), 1, None):
                yield json.loads(line)

    def remove(self) -> None:
        shutil.rmtree(self.folder)
