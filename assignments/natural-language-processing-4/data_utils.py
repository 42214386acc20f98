"""Labelled reviews as inputs of BERT, with the names that scripts of this family use."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attnlab.base.errors import UserError, unknown
from attnlab.data.encoded import LabelledExamples
from attnlab.data.tasks.catalog import TASKS
from attnlab.data.tasks.files import find_files, read_files
from attnlab.data.tasks.labelled import SPLITS, LabelledSet
from attnlab.data.tokenizers.wordpiece import WordPiece


@dataclass(frozen=True)
class InputExample:
    """One text, or two, and the name of its class."""

    guid: str
    text_a: str
    text_b: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class InputFeatures:
    """One example as numbers, without padding."""

    input_ids: list[int]
    attention_mask: list[int]
    token_type_ids: list[int]
    label: int


class YelpProcessor:
    """Reviews and their stars: rows of "stars","text" in train.csv, valid.csv and test.csv."""

    task = TASKS["yelp"]

    def get_train_examples(self, data_dir: str | Path) -> list[InputExample]:
        return self._examples(data_dir, "train")

    def get_dev_examples(self, data_dir: str | Path) -> list[InputExample]:
        return self._examples(data_dir, "dev")

    def get_test_examples(self, data_dir: str | Path) -> list[InputExample]:
        return self._examples(data_dir, "test")

    def get_labels(self) -> list[str]:
        return list(self.task.request.classes)

    def _examples(self, data_dir: str | Path, split: str) -> list[InputExample]:
        names = self.get_labels()
        return [
            InputExample(f"{split}-{n}", example.text, example.pair, names[example.label])
            for n, example in enumerate(read_reviews(Path(data_dir)).splits[split])
        ]


processors = {"yelp": YelpProcessor}
output_modes = {"yelp": "classification"}


def read_reviews(folder: Path) -> LabelledSet:
    """All three files, checked: an unknown label is reported with its file and line."""
    if not folder.is_dir():
        raise UserError(f"--data_dir: {folder} is not a folder: give the one with train.csv, valid.csv and test.csv.")
    return _read_once(folder.resolve())


@cache
def _read_once(folder: Path) -> LabelledSet:
    files = find_files(folder)
    if missing := [split for split in SPLITS if split not in files]:
        name = {"dev": "valid.csv", "test": "test.csv"}[missing[0]]
        raise UserError(f"--data_dir: {folder} has no {name}: put train.csv, valid.csv and test.csv there.")
    return read_files(files, YelpProcessor.task.request, clean=YelpProcessor.task.clean)


class Features(LabelledExamples):
    """A sequence of InputFeatures for your own DataLoader; the lab batches it directly."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> InputFeatures:
        row = self.rows[index]
        return InputFeatures(row.input_ids, [1] * len(row.input_ids), row.token_type_ids, self.labels[index])


def convert_examples_to_features(
    examples: Sequence[InputExample], tokenizer: WordPiece, max_length: int, label_list: Sequence[str]
) -> Features:
    """[CLS] text_a [SEP] text_b [SEP], cut to `max_length` pieces."""
    places = {name: place for place, name in enumerate(label_list)}
    for example in examples:
        if example.label not in places:
            raise UserError(f"{example.guid}: the label {example.label!r} is not among {', '.join(label_list)}.")
    pairs = [example.text_b or "" for example in examples] if any(example.text_b for example in examples) else None
    return Features(
        [example.text_a for example in examples],
        [places[str(example.label)] for example in examples],
        tokenizer,
        max_length,
        pairs,
    )


def load_and_cache_examples(
    args: argparse.Namespace, task: str, tokenizer: WordPiece, split: str = "train"
) -> Features:
    """A split of a task. Reading takes seconds, so there is no cache."""
    if task not in processors:
        raise UserError(unknown("task", task, processors))
    processor = processors[task]()
    examples = getattr(processor, f"get_{split}_examples")(args.data_dir)
    if split == "train" and args.train_examples is not None:
        examples = first_of_each(examples, args.train_examples)
    return convert_examples_to_features(examples, tokenizer, args.max_seq_length, processor.get_labels())


def first_of_each(examples: Sequence[InputExample], count: int) -> list[InputExample]:
    """The first `count` examples when the classes take turns, in the order of the file."""
    if count > len(examples):
        raise UserError(f"--train_examples {count}: there are {len(examples)}.")
    turns: dict[str | None, int] = {}
    ranked = []
    for place, example in enumerate(examples):
        turns[example.label] = turns.get(example.label, 0) + 1
        ranked.append((turns[example.label], place))
    return [examples[place] for place in sorted(place for _, place in sorted(ranked)[:count])]
