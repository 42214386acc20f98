"""All labelled texts by one function, `load_labelled`: a task by its name, a file, a folder, or a hub data set.

Here too: the tasks the lab knows by name, and where it looks for their files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnlab.base.errors import UserError, nearest, unknown
from attnlab.config import split_list
from attnlab.config.classify import TextsSection
from attnlab.data.tasks.files import find_files, has_labels, read_files
from attnlab.data.tasks.folds import Fold
from attnlab.data.tasks.hub_files import parse
from attnlab.data.tasks.hub_sets import load_hub
from attnlab.data.tasks.json_rows import SPELLINGS
from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.observations import observe
from attnlab.data.tasks.read_table import read_table
from attnlab.data.tasks.splits import Splitter, split_by_class
from attnlab.data.tasks.tables import ColumnRequest

SENTIMENT_LABELS = ("negative", "positive")


class Opinion(NamedTuple):
    """A sentence of the embedded sentiment set and its label as a word."""

    text: str
    label: str


def load_sentiment() -> dict[str, list[Opinion]]:
    """The lab's own sentiment set: 600 opinions written for it, from plain praise to irony, by split.

    Films, meals, books, hotels, gadgets, services, concerts, journeys, matches, classes; 360 for training,
    120 each for dev and test, half of each positive. With 120 sentences an accuracy near 80% is known to
    about seven points either way (95%), so report intervals.
    """
    file = resources.files("attnlab.data.tasks") / "sentiment.tsv"
    splits: dict[str, list[Opinion]] = {"train": [], "dev": [], "test": []}
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        text, label, split = line.split("\t")
        splits[split].append(Opinion(text, label))
    return splits


DATA_VARIABLE = "ATTNLAB_DATA"
BOOLQ_TRAIN, BOOLQ_ALL = 8_000, 9_427  # of the published training set; the rest is the test part


@dataclass(frozen=True)
class NamedTask:
    about: str
    request: ColumnRequest
    files: tuple[str, ...]
    source: str
    """Where to get the files."""
    splitter: Splitter = split_by_class
    """How a split without a file is made from the training file."""
    clean: Callable[[str], str] = str
    test: str | None = None
    """A file for the test, used where it exists and has labels."""


def _boolq_test(
    examples: Sequence[LabelledText], missing: Sequence[str], seed: int
) -> tuple[dict[str, list[LabelledText]], str]:
    """The first 8,000 to train, the rest to test; of a smaller file, the same proportion."""
    if len(examples) == BOOLQ_ALL:
        note = (
            f"train is the first {BOOLQ_TRAIN:,} rows of the training file, test the other {BOOLQ_ALL - BOOLQ_TRAIN:,}."
        )
        return {"train": list(examples[:BOOLQ_TRAIN]), "test": list(examples[BOOLQ_TRAIN:])}, note
    share = 1 - BOOLQ_TRAIN / BOOLQ_ALL
    splits, note = split_by_class(examples, missing, seed, share)
    return splits, (
        f"the training file is not the published one of {BOOLQ_ALL:,} rows ({BOOLQ_TRAIN:,} to train, the other "
        f"{share:.1%} to test); the same proportion instead: {note}"
    )


def _newlines(text: str) -> str:
    return text.replace("\\n", "\n")


TASKS = {
    "boolq": NamedTask(
        "is the answer to the question, by the passage, yes?",
        ColumnRequest("question", "passage", "answer", ("no", "yes")),
        ("train.jsonl", "dev.jsonl"),
        "BoolQ, google-research-datasets/boolean-questions",
        splitter=_boolq_test,
    ),
    "sst2": NamedTask(
        "is the sentence of a film review positive?",
        ColumnRequest("sentence", None, "label", ("negative", "positive"), header=True),
        ("train.tsv", "dev.tsv"),
        "SST-2 of the GLUE benchmark",
        test="test.tsv",
    ),
    "yelp": NamedTask(
        "how many stars go with the review?",
        ColumnRequest("2", None, "1", ("1 star", "2 stars", "3 stars", "4 stars", "5 stars"), header=False),
        ("train.csv", "valid.csv", "test.csv"),
        'Yelp reviews, rows of "stars","text" without a header',
        clean=_newlines,
    ),
}
SENTIMENT = "sentiment"
ABOUT = {SENTIMENT: "is the opinion positive? (comes with the lab)"} | {
    name: task.about for name, task in TASKS.items()
}


def load_task(name: str, folder: Path | None = None, seed: int = 0, hold_out: bool = True) -> LabelledSet:
    """A task by its name, from `folder` or the folder that ATTNLAB_DATA names."""
    if name == SENTIMENT:
        return _sentiment()
    if name not in TASKS:
        raise UserError(unknown("task", name, ABOUT))
    task = TASKS[name]
    files, notes = _labelled_files(_find_task_files(name, folder), task.request)
    data = read_files(files, task.request, seed, task.splitter, task.clean, name, hold_out)
    return replace(data, notes=(*notes, *data.notes))


def _find_task_files(name: str, folder: Path | None) -> dict[str, Path]:
    task = TASKS[name]
    root = folder or (Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None)
    get = f"{' and '.join(task.files)} ({task.source})"
    if root is None:
        raise UserError(
            f"{name} does not come with the lab: give a folder with {name}/ and in it {get}, by --data-folder or "
            f"{DATA_VARIABLE}."
        )
    paths = [root / name / file for file in task.files]
    if missing := [path for path in paths[:2] if not path.is_file()]:
        raise UserError(f"{name}: {missing[0]} does not exist: put {get} there.")
    if task.test:
        paths.append(root / name / task.test)
    return {SPELLINGS[path.stem]: path for path in paths if path.is_file()}


def _labelled_files(files: dict[str, Path], request: ColumnRequest) -> tuple[dict[str, Path], list[str]]:
    """The files without a test file that has no labels, and a sentence about it."""
    test = files.get("test")
    if test is None or request.label is None or has_labels(read_table(test, request), request.label):
        return files, []
    used = {split: path for split, path in files.items() if split != "test"}
    return used, [f"{test} has no labels in {request.label!r}: it is not used."]


def _sentiment() -> LabelledSet:
    places = {label: place for place, label in enumerate(SENTIMENT_LABELS)}
    splits = {
        split: [LabelledText(text, places[label]) for text, label in examples]
        for split, examples in load_sentiment().items()
    }
    return LabelledSet(SENTIMENT, SENTIMENT_LABELS, splits)


def load_labelled(
    source: str | Path,
    request: ColumnRequest | None = None,
    dev: Path | None = None,
    test: Path | None = None,
    seed: int = 0,
    data_folder: Path | None = None,
    hold_out: bool = True,
    fold: Fold | None = None,
) -> LabelledSet:
    """The labelled texts that `source` names; columns, classes, dev and test apply to the user's own files.

    `hold_out`: whether to take a test split from the training rows where none is given; `fold`: which, of several.
    """
    request = request or ColumnRequest()
    if fold is not None and not Path(source).exists():
        raise UserError(f"--folds: {source} has splits of its own; cross-validation is for the rows of a file.")
    if str(source) in ABOUT:
        if request != ColumnRequest() or dev or test:
            raise UserError(
                f"{source} is a task with its own files and columns: leave out those options, or give a file."
            )
        return load_task(str(source), data_folder, seed, hold_out)
    path = Path(source)
    if not path.exists() and (name := parse(str(source))):
        if dev or test:
            raise UserError(f"{source} is a hub data set with its own splits: leave out --dev and --test.")
        return load_hub(name, request, seed, hold_out)
    if not path.exists():
        close = nearest(str(source), ABOUT)
        hint = f"did you mean {close!r}?" if close else f"tasks are {', '.join(sorted(ABOUT))}."
        raise UserError(f"{source} is neither a task nor a file: {hint}")
    files = find_files(path) if path.is_dir() else {"train": path}
    given = {split: file for split, file in (("dev", dev), ("test", test)) if file is not None}
    splitter = fold or split_by_class
    data = read_files(files | given, request, seed, splitter, name=str(path), hold_out=hold_out or fold is not None)
    return replace(data, notes=(*data.notes, *observe(data)))


def read_texts(section: TextsSection) -> LabelledSet:
    """The examples of the task or the files that a section names: all of train, as many of dev and test as asked."""
    request = ColumnRequest(
        section.text,
        section.pair,
        section.label,
        tuple(split_list(section.classes)),
        section.header,
        section.allow_empty,
        section.separator,
        section.quote,
        section.encoding,
        section.skip_bad_rows,
    )
    dev, test, folder = (Path(path) if path else None for path in (section.dev, section.test, section.data_folder))
    fold = Fold(section.folds, section.fold or 1) if section.folds else None
    data = load_labelled(section.task, request, dev, test, section.split_seed, folder, section.hold_out, fold)
    return data if section.eval_examples is None else _fewer(data, section.eval_examples, section.split_seed)


def _fewer(data: LabelledSet, count: int, seed: int) -> LabelledSet:
    """With at most `count` examples in dev and in test, the same for every run."""
    splits, notes = dict(data.splits), list(data.notes)
    for split in ("dev", "test"):
        examples = splits.get(split, [])
        if len(examples) > count:
            splits[split] = draw(examples, count, seed)
            notes.append(f"{split} is {count:,} of its {len(examples):,} examples.")
    return replace(data, splits=splits, notes=tuple(notes))


def select_examples(data: LabelledSet, section: TextsSection, seed: int, overfit: int | None) -> LabelledSet:
    """The examples that the section asks for; to memorize a few, these are dev as well and there is no test."""
    if overfit is not None:
        few = draw(data.splits["train"], overfit, seed)
        return replace(data, splits={"train": few, "dev": few})
    splits = dict(data.splits)
    if section.examples is not None:
        splits["train"] = draw(splits["train"], section.examples, seed)
    if not section.score_test:
        splits.pop("test", None)
    return replace(data, splits=splits)


def draw(examples: list[LabelledText], count: int, seed: int) -> list[LabelledText]:
    """`count` of the examples, the same share of every class (largest remainders), in their order."""
    if count > len(examples):
        raise UserError(f"expected at most {len(examples):,} training examples, which is all there are, got {count:,}.")
    generator = np.random.default_rng(seed)
    labels = np.array([example.label for example in examples])
    classes, sizes = np.unique(labels, return_counts=True)
    exact = sizes * count / len(examples)
    shares = np.floor(exact).astype(int)
    for place in np.argsort(shares - exact, kind="stable")[: count - shares.sum()]:
        shares[place] += 1
    chosen = [
        generator.permutation(np.flatnonzero(labels == label))[:share]
        for label, share in zip(classes, shares, strict=True)
    ]
    return [examples[place] for place in np.sort(np.concatenate(chosen))]
