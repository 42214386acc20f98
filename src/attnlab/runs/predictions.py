"""Predictions of a run: predictions-SPLIT.jsonl, one example per line, whatever the job.

    {"text": "...", "pair": "...", "label": "...", "predicted": "...", "probability": 0.9, "label_probability": 0.9}

`pair` is there for pairs of texts, `label_probability` where every class has a probability. Files of earlier versions,
which call them `said` and `of_label`, are read as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnlab.base.errors import UserError
from attnlab.base.files import write_text

OLD_NAMES = {"said": "predicted", "of_label": "label_probability"}


@dataclass(frozen=True)
class PredictedExample:
    text: str
    label: str
    predicted: str
    probability: float = float("nan")
    label_probability: float | None = None
    pair: str | None = None


@dataclass(frozen=True)
class Prediction:
    """Which predictions were right, (N,), and a fingerprint of the texts and labels they are for."""

    right: NDArray[np.bool_]
    examples: str


def write_predictions(run: Path, split: str, examples: Iterable[PredictedExample]) -> None:
    write_text(run / f"predictions-{split}.jsonl", prediction_lines(examples))


def prediction_lines(examples: Iterable[PredictedExample]) -> str:
    """One line of JSON per example."""
    rows = [{name: value for name, value in asdict(example).items() if value is not None} for example in examples]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_examples(run: Path, split: str) -> list[PredictedExample] | None:
    """The predictions of a run on a split; None if there are none."""
    path = run / f"predictions-{split}.jsonl"
    if not path.is_file():
        return None
    examples = []
    with path.open("rb") as file:  # lines end at a newline only: other separators are characters of a text
        for number, line in enumerate(file, start=1):
            try:
                row = {OLD_NAMES.get(name, name): value for name, value in json.loads(line).items()}
                examples.append(PredictedExample(**row))
            except (ValueError, TypeError, AttributeError, RecursionError):
                raise UserError(
                    f"{path}, line {number}: expected a prediction with text, label and predicted: run it again."
                ) from None
    return examples


def read_predictions(run: Path, split: str = "test") -> Prediction | None:
    """Which predictions on a split were right; None if there are none."""
    examples = read_examples(run, split)
    if examples is None:
        return None
    fingerprint = hashlib.sha256()
    for example in examples:
        fingerprint.update(json.dumps([example.text, example.pair, example.label]).encode())
    right = np.array([example.label == example.predicted for example in examples], bool)
    return Prediction(right, fingerprint.hexdigest())
