"""Labelled reviews: rows of "stars","text" in train.csv, valid.csv and test.csv, as inputs of BERT."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from batches import Inputs, attention_mask, pad
from errors import UserError, unknown
from wordpiece import WordPiece

FILES = {"train": "train.csv", "dev": "valid.csv", "test": "test.csv"}


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
    """Reviews and their stars."""

    def get_train_examples(self, data_dir: str | Path) -> list[InputExample]:
        return self._examples(data_dir, "train")

    def get_dev_examples(self, data_dir: str | Path) -> list[InputExample]:
        return self._examples(data_dir, "dev")

    def get_test_examples(self, data_dir: str | Path) -> list[InputExample]:
        return self._examples(data_dir, "test")

    def get_labels(self) -> list[str]:
        return ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]

    def _examples(self, data_dir: str | Path, split: str) -> list[InputExample]:
        path, labels = data_file(data_dir, split), self.get_labels()
        stars = {name.split()[0]: name for name in labels}
        examples: list[InputExample] = []
        for line, (label, text) in _rows(path, columns=2):
            if label.strip() not in stars:
                raise UserError(f"{path}, line {line}: the label {label!r} is not among {', '.join(stars)}.")
            if not text.strip():
                raise UserError(f"{path}, line {line}: the text is empty: fill it or remove the row.")
            examples.append(InputExample(f"{split}-{len(examples)}", line_breaks(text), None, stars[label.strip()]))
        return examples


processors = {"yelp": YelpProcessor}
output_modes = {"yelp": "classification"}


def find_processor(task: str) -> YelpProcessor:
    if task not in processors:
        raise UserError(unknown("task", task, processors))
    return processors[task]()


class Features:
    """All examples of a split as numbers."""

    def __init__(self, rows: Sequence[InputFeatures], pad_id: int, cut: int) -> None:
        self.rows, self.pad_id, self.cut = list(rows), pad_id, cut
        self.lengths = [len(row.input_ids) for row in rows]
        self.labels = [row.label for row in rows]
        self.pairs = any(1 in row.token_type_ids for row in rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> InputFeatures:
        return self.rows[index]

    def collate(self, indices: Sequence[int]) -> Inputs:
        rows = [self.rows[index] for index in indices]
        inputs = {
            "input_ids": pad([row.input_ids for row in rows], self.pad_id),
            "attention_mask": attention_mask([row.input_ids for row in rows]),
            "labels": torch.tensor([row.label for row in rows]),
        }
        return inputs | ({"token_type_ids": pad([row.token_type_ids for row in rows], 0)} if self.pairs else {})


def convert_examples_to_features(
    examples: Sequence[InputExample], tokenizer: WordPiece, max_length: int, label_list: Sequence[str]
) -> Features:
    """[CLS] text_a [SEP], and text_b [SEP] if there is one, cut to `max_length` pieces."""
    numbers = {name: number for number, name in enumerate(label_list)}
    encoded = [tokenizer.encode(example.text_a, example.text_b, max_length) for example in examples]
    rows = [
        InputFeatures(row.input_ids, [1] * len(row.input_ids), row.token_type_ids, numbers[str(example.label)])
        for row, example in zip(encoded, examples, strict=True)
    ]
    return Features(rows, tokenizer.pad_id, sum(row.cut for row in encoded))


def load_and_cache_examples(
    args: argparse.Namespace, task: str, tokenizer: WordPiece, split: str = "train"
) -> Features:
    """A split of a task. Reading takes seconds, so there is no cache."""
    processor = find_processor(task)
    examples = getattr(processor, f"get_{split}_examples")(args.data_dir)
    if split == "train" and args.train_examples is not None:
        examples = some_of_each(examples, args.train_examples, args.seed)
    return convert_examples_to_features(examples, tokenizer, args.max_seq_length, processor.get_labels())


def some_of_each(examples: Sequence[InputExample], count: int, seed: int) -> list[InputExample]:
    """`count` examples drawn with the seed, as many of each class as there are, to one; in the order of the file."""
    if count > len(examples):
        raise UserError(f"--train_examples {count}: there are {len(examples)}.")
    taken: dict[str | None, int] = {}
    ranked = []
    for index in torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed)).tolist():
        label = examples[index].label
        ranked.append((taken.get(label, 0), index))  # the classes take turns
        taken[label] = taken.get(label, 0) + 1
    return [examples[index] for index in sorted(index for _, index in sorted(ranked)[:count])]


def data_file(data_dir: str | Path, split: str) -> Path:
    folder, path = Path(data_dir), Path(data_dir, FILES[split])
    if not folder.is_dir():
        raise UserError(f"--data_dir: {folder} is not a folder: give the one with {', '.join(FILES.values())}.")
    if not path.is_file():
        raise UserError(f"--data_dir: {folder} has no {path.name}: put {', '.join(FILES.values())} there.")
    return path


def read_text(path: Path) -> str:
    """The whole text of a file; a null character means that it is none."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise UserError(f"{path} {reason}: check the name.") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line} is not UTF-8: save the file as UTF-8.") from None
    if "\0" in text:
        raise UserError(f"{path} is a binary file: give text in UTF-8.")
    if not text.strip():
        raise UserError(f"{path} is empty: give a file with at least one line of text.")
    return text


def line_breaks(text: str) -> str:
    r"""Yelp's files write a line break as \n, two characters."""
    return text.replace("\\n", "\n")


def _rows(path: Path, columns: int) -> list[tuple[int, list[str]]]:
    """All rows of a CSV, each with the number of its first line."""
    text, rows, line = read_text(path), [], 1
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            if cells and len(cells) != columns:
                raise UserError(
                    f'{path}, line {line} has {len(cells)} fields, expected "stars","text": quote a text with commas.'
                )
            rows += [(line, cells)] if cells else []
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {line} is not a row of a CSV ({error}): check its quotes.") from None
    return rows
