"""What a classifier said about each example of a split, as its run folder keeps it."""

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
    """Which examples were right, (N,), and a fingerprint of texts and labels: of which examples that is said."""

    right: NDArray[np.bool_]
    examples: str


def read_predictions(run: Path, split: str = "test") -> Prediction | None:
    """predictions-SPLIT.jsonl of a run; None if there is none."""
    path = run / f"predictions-{split}.jsonl"
    if not path.is_file():
        return None
    right, examples = [], hashlib.sha256()
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                found = json.loads(line)
                right.append(found["label"] == found["said"])
                examples.update(json.dumps([found["text"], found.get("pair"), found["label"]]).encode())
            except (ValueError, KeyError, TypeError):
                raise UserError(f"{path}, line {number}: this is no prediction: run it again.") from None
    return Prediction(np.array(right, bool), examples.hexdigest())
