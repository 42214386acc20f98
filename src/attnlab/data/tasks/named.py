"""The tasks the lab knows by name, and where their files are looked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.base.errors import UserError, unknown
from attnlab.data.tasks import sentiment
from attnlab.data.tasks.columns import Request
from attnlab.data.tasks.labelled import Example, Labelled
from attnlab.data.tasks.own import SPELLINGS, read_own
from attnlab.data.tasks.splitting import Parting, by_class

VARIABLE = "ATTNLAB_DATA"
BOOLQ_TRAIN, BOOLQ_ALL = 8_000, 9_427  # of the published training set; the rest is the test part


@dataclass(frozen=True)
class Task:
    about: str
    request: Request
    files: tuple[str, ...]
    source: str
    """Where a person gets the files."""
    parting: Parting = by_class
    """How a split that has no file is made from the training file."""
    clean: Callable[[str], str] = str


def _boolq_test(examples: Sequence[Example], missing: Sequence[str], seed: int) -> tuple[dict[str, list[Example]], str]:
    """The first 8,000 to train, the rest to test; of a smaller file, the same proportion."""
    if len(examples) == BOOLQ_ALL:
        note = (
            f"train is the first {BOOLQ_TRAIN:,} rows of the training file, test the other {BOOLQ_ALL - BOOLQ_TRAIN:,}."
        )
        return {"train": list(examples[:BOOLQ_TRAIN]), "test": list(examples[BOOLQ_TRAIN:])}, note
    share = 1 - BOOLQ_TRAIN / BOOLQ_ALL
    splits, note = by_class(examples, missing, seed, share)
    return splits, (
        f"the training file is not the published one of {BOOLQ_ALL:,} rows ({BOOLQ_TRAIN:,} to train, the other "
        f"{share:.1%} to test); the same proportion instead: {note}"
    )


def _newlines(text: str) -> str:
    return text.replace("\\n", "\n")


TASKS = {
    "boolq": Task(
        "is the answer to the question, by the passage, yes?",
        Request("question", "passage", "answer", ("no", "yes")),
        ("train.jsonl", "dev.jsonl"),
        "BoolQ, google-research-datasets/boolean-questions",
        parting=_boolq_test,
    ),
    "sst2": Task(
        "is the sentence of a film review positive?",
        Request("sentence", None, "label", ("negative", "positive"), header=True),
        ("train.tsv", "dev.tsv"),
        "SST-2 of the GLUE benchmark",
    ),
    "yelp": Task(
        "how many stars go with the review?",
        Request("2", None, "1", ("1 star", "2 stars", "3 stars", "4 stars", "5 stars"), header=False),
        ("train.csv", "valid.csv", "test.csv"),
        'Yelp reviews, rows of "stars","text" without a header',
        clean=_newlines,
    ),
}
SENTIMENT = "sentiment"
ABOUT = {SENTIMENT: "is the opinion positive? (comes with the lab)"} | {
    name: task.about for name, task in TASKS.items()
}


def load_task(name: str, folder: Path | None = None, seed: int = 0, hold_out: bool = True) -> Labelled:
    """A task by its name, from `folder` or the folder that ATTNLAB_DATA names."""
    if name == SENTIMENT:
        return _sentiment()
    if name not in TASKS:
        raise UserError(unknown("task", name, ABOUT))
    files = _find(name, folder)
    task = TASKS[name]
    return read_own(files, task.request, seed, task.parting, task.clean, name, hold_out)


def _find(name: str, folder: Path | None) -> dict[str, Path]:
    task = TASKS[name]
    root = folder or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    get = f"{' and '.join(task.files)} ({task.source})"
    if root is None:
        raise UserError(
            f"{name} is not with the lab: name a folder that has {name}/ with {get} by --data-folder or {VARIABLE}."
        )
    paths = [root / name / file for file in task.files]
    if absent := [path for path in paths[:2] if not path.is_file()]:
        raise UserError(f"{name} was not found, looked for {absent[0]}: put {get} there.")
    return {SPELLINGS[path.stem]: path for path in paths if path.is_file()}


def _sentiment() -> Labelled:
    places = {label: place for place, label in enumerate(sentiment.LABELS)}
    splits = {
        split: [Example(text, places[label]) for text, label in examples]
        for split, examples in sentiment.load_sentiment().items()
    }
    return Labelled(SENTIMENT, sentiment.LABELS, splits)
