"""Labelled texts in a user's own files: one file, a folder of train, dev and test, or a file for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.data.tasks.classes import find_classes, label_word, named_classes
from attnlab.data.tasks.columns import SPLIT, Columns, Request, choose
from attnlab.data.tasks.labelled import SPLITS, Example, Labelled
from attnlab.data.tasks.splitting import Parting, by_class
from attnlab.data.tasks.table import FORMATS, Row, Table, read_table

SPELLINGS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
}


def find_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that are called train, dev (valid, validation, val) or test."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = SPELLINGS.get(path.stem.lower())
        if split is None or path.suffix.lower() not in FORMATS:
            continue
        if split in found:
            raise UserError(f"{folder} has two files for {split}, {found[split].name} and {path.name}: keep one.")
        found[split] = path
    if "train" not in found:
        raise UserError(f"{folder} has no file called train ({', '.join(FORMATS)}): name a file.")
    return {split: found[split] for split in SPLITS if split in found}


def read_own(
    files: Mapping[str, Path],
    request: Request,
    seed: int = 0,
    parting: Parting = by_class,
    clean: Callable[[str], str] = str,
    name: str | None = None,
    hold_out: bool = True,
) -> Labelled:
    """Labelled texts from files by split; a split that has none is made from the training file with the seed.

    Without `hold_out` no test split is made: every row that is not for dev is trained on.
    """
    tables = {split: read_table(path, request) for split, path in files.items()}
    found = read_tables(tables, request, seed, parting, clean, name, hold_out)
    return replace(found, files=dict(files))


def read_tables(
    tables: Mapping[str, Table],
    request: Request,
    seed: int = 0,
    parting: Parting = by_class,
    clean: Callable[[str], str] = str,
    name: str | None = None,
    hold_out: bool = True,
) -> Labelled:
    """Labelled texts from rows by split, whatever files they came from."""
    train = tables["train"]
    columns = choose(train, request)
    notes = [str(columns) + ("." if train.named else ": the file has no header, columns are counted from 1.")]
    if len(tables) == 1:
        tables = _by_column(train)
    words = {split: _labels(table, columns) for split, table in tables.items()}
    if not train.named and request.header is None and words["train"].count(words["train"][0]) == 1:
        notes.append(f"the label {words['train'][0]!r} of the first row occurs once: if it is a header, say --header.")
    classes, names = _classes(train, words["train"], request, columns)
    splits = {split: _examples(table, columns, words[split], classes, clean) for split, table in tables.items()}
    needed = SPLITS if hold_out else SPLITS[:2]
    if missing := [split for split in needed if split not in splits]:
        made, note = parting(splits["train"], missing, seed)
        splits |= made
        _refuse_empty(train.path, splits, missing)
        notes.append(note)
    splits = {split: splits[split] for split in SPLITS if split in splits}
    unseen = set(range(len(names))) - {example.label for example in splits["train"]}
    if unseen:
        notes.append(f"no training example has the class {', '.join(names[place] for place in sorted(unseen))}.")
    return Labelled(name or str(train.path), names, splits, notes=tuple(notes), columns=columns)


def _by_column(table: Table) -> dict[str, Table]:
    """A file with a column "split" is several; any other is the training file."""
    column = next((name for name in table.columns if name.lower() == SPLIT), None)
    if column is None:
        return {"train": table}
    parts: dict[str, list[Row]] = {}
    for row in table.rows:
        word = str(_field(table, row, column))
        split = SPELLINGS.get(word.strip().lower())
        if split is None:
            raise UserError(f"{table.where(row)}: the split {word!r} is none of train, dev, test.")
        parts.setdefault(split, []).append(row)
    if "train" not in parts:
        raise UserError(f"{table.path}: no row has the split train.")
    return {split: table._replace(rows=rows) for split, rows in parts.items()}


def _classes(
    table: Table, words: list[str], request: Request, columns: Columns
) -> tuple[dict[str, int], tuple[str, ...]]:
    different = set(words)
    if len(different) < 2:
        raise UserError(f"{table.path}: all rows have the label {words[0]!r}: a classifier needs two classes or more.")
    if request.classes:
        if len(set(request.classes) - {""}) < max(len(request.classes), 2):
            raise UserError(f"--classes {','.join(request.classes)}: give two different names or more.")
        return named_classes(different, request.classes, str(table.path)), request.classes
    if request.label is None and len(different) > max(2, len(words) / 2):
        raise UserError(
            f"{table.path}: the column {columns.label!r} has {len(different):,} different labels in {len(words):,} "
            "rows: name the label's column with --label."
        )
    classes = find_classes(different)
    return classes, tuple(classes)


def _labels(table: Table, columns: Columns) -> list[str]:
    return [label_of(table, row, columns.label) for row in table.rows]


def label_of(table: Table, row: Row, column: str) -> str:
    value = _field(table, row, column)
    word = label_word(value)
    if word is None:
        what = "the label is empty" if value is None or not str(value).strip() else f"{value!r} is no label"
        raise UserError(f"{table.where(row)}: {what}: give a word, a whole number, true or false in {column!r}.")
    return word


def _examples(
    table: Table, columns: Columns, words: list[str], classes: Mapping[str, int], clean: Callable[[str], str]
) -> list[Example]:
    examples = []
    for row, word in zip(table.rows, words, strict=True):
        if word not in classes:
            raise UserError(f"{table.where(row)}: the label {word!r} is not among {', '.join(classes)}.")
        pair = clean(text_of(table, row, columns.pair)) if columns.pair else None
        examples.append(Example(clean(text_of(table, row, columns.text)), classes[word], pair))
    return examples


def text_of(table: Table, row: Row, column: str) -> str:
    value = _field(table, row, column)
    if value is None or not str(value).strip():
        raise UserError(f"{table.where(row)}: the text in {column!r} is empty: fill it or remove the row.")
    if not isinstance(value, str):
        raise UserError(f"{table.where(row)}: {column!r} is no text but {value!r:.40}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UserError(f"{table.where(row)}: the text in {column!r} has half of a surrogate pair.") from None
    return value


def _field(table: Table, row: Row, column: str) -> Any:
    if column not in row.fields:
        raise UserError(f"{table.where(row)} has no column {column!r}: its columns are {', '.join(row.fields)}.")
    return row.fields[column]


def _refuse_empty(path: Path, splits: Mapping[str, list[Example]], made: list[str]) -> None:
    empty = [split for split in made if not splits[split]]
    if empty:
        raise UserError(
            f"{path} has too few rows to make {' and '.join(empty)} from: give a file for each, "
            f"or {len(made) + 1} rows or more of a class."
        )
