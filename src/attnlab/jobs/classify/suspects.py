"""Training rows whose label is likely wrong, in the folder and on the page of a run: label-errors.jsonl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.data.tasks.labelled import LabelledSet
from attnlab.evaluation.label_errors import HOW, find_suspects
from attnlab.report.page import Passage, Table

FILE = "label-errors.jsonl"
SHOWN = 12
LONGEST = 200
"""Characters of a text on the page."""


def write_suspects(run: Path, data: LabelledSet) -> None:
    """Nothing is written where there are too few rows to say."""
    suspects = find_suspects(data)
    if suspects is not None:
        write_text(run / FILE, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in suspects.rows()))


def passage(run: Path) -> Passage | None:
    """None for a run that did not look for them."""
    rows = _read(run / FILE)
    if rows is None:
        return None
    count = f"{len(rows):,} training {'row has' if len(rows) == 1 else 'rows have'} a label that may be wrong"
    if not rows:
        return Passage("Labels that may be wrong", [f"{count}. {HOW}"])
    more = f"; the {SHOWN} most certain are shown, all are in {FILE}" if len(rows) > SHOWN else ""
    lines = [
        [
            " | ".join(_short(row[part]) for part in ("text", "pair") if row.get(part)),
            str(row["label"]),
            str(row["likely"]),
            f"{row['probability']:.0%}",
            f"{row['label_probability']:.0%}",
        ]
        for row in rows[:SHOWN]
    ]
    table = Table(["text", "label", "likely", "probability", "of the label"], lines)
    return Passage("Labels that may be wrong", [f"{count}{more}. {HOW}"], [table])


def _read(path: Path) -> list[dict[str, Any]] | None:
    if not path.is_file():
        return None
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    except ValueError:
        raise UserError(f"{path} is damaged: remove it.") from None


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"
