"""A classifier's predictions for the examples of a split, from its run folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnlab.base.errors import UserError


@dataclass(frozen=True)
class Prediction:
    """Which predictions were right, (N,), and a fingerprint of the texts and labels they are for."""

    right: NDArray[np.bool_]
    examples: str


def read_predictions(run: Path, split: str = "test") -> Prediction | None:
    """The content of a run's predictions-SPLIT.jsonl; None if there is none."""
    path = run / f"predictions-{split}.jsonl"
    if not path.is_file():
        return None
    right, examples = [], hashlib.sha256()
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
                right.append(row["label"] == row["said"])
                examples.update(json.dumps([row["text"], row.get("pair"), row["label"]]).encode())
            except (ValueError, KeyError, TypeError):
                raise UserError(
                    f"{path}, line {number}: expected a prediction with text, label and said: run it again."
                ) from None
    return Prediction(np.array(right, bool), examples.hexdigest())
