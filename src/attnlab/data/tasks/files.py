"""Labelled texts in the user's files: one file, a folder of train, dev and test, or one file per split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.data.tasks.bad_rows import usable_rows
from attnlab.data.tasks.columns import Columns, choose_columns
from attnlab.data.tasks.json_rows import SPELLINGS
from attnlab.data.tasks.labelled import SPLITS, LabelledSet, LabelledText, find_classes, label_word, named_classes
from attnlab.data.tasks.read_table import FORMATS, ending, read_table
from attnlab.data.tasks.splits import Splitter, split_by_class
from attnlab.data.tasks.tables import SPLIT, BadRow, ColumnRequest, FileRow, FileTable

FEWEST = 6
"""Rows from which on a label that occurs once is unusual."""
HIDDEN = -1
"""The label of a row whose label is not published."""
UNKNOWN = (None, "")


def find_files(folder: Path) -> dict[str, Path]:
    """The files of a folder named train, dev (valid, validation, val) or test."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = SPELLINGS.get(path.name.partition(".")[0].lower())
        if split is None or ending(path) not in FORMATS:
            continue
        if split in found:
            raise UserError(f"{folder} has two files for {split}, {found[split].name} and {path.name}: keep one.")
        found[split] = path
    if "train" not in found:
        raise UserError(f"{folder} has no file named train ({', '.join(FORMATS)}): give a file.")
    return {split: found[split] for split in SPLITS if split in found}


def read_files(
    files: Mapping[str, Path],
    request: ColumnRequest,
    seed: int = 0,
    splitter: Splitter = split_by_class,
    clean: Callable[[str], str] = str,
    name: str | None = None,
    hold_out: bool = True,
) -> LabelledSet:
    """Labelled texts from files by split; a split without a file is taken from the training file with the seed.

    Without `hold_out` no test split is taken: every row that is not for dev is for training.
    """
    tables = {split: read_table(path, request) for split, path in files.items()}
    data = labelled_from_tables(tables, request, seed, splitter, clean, name, hold_out)
    return replace(data, files=dict(files))


def labelled_from_tables(
    tables: Mapping[str, FileTable],
    request: ColumnRequest,
    seed: int = 0,
    splitter: Splitter = split_by_class,
    clean: Callable[[str], str] = str,
    name: str | None = None,
    hold_out: bool = True,
) -> LabelledSet:
    """Labelled texts from tables by split."""
    train = tables["train"]
    columns = choose_columns(train, request)
    notes = [note for table in tables.values() for note in _reading(table, train)]
    notes.append(str(columns) + ("." if train.named else ", counted from 1."))
    tables, skipped = dict(tables), list[BadRow]()
    for split, table in tables.items():
        tables[split], bad, left_out = usable_rows(table, _row_check(columns, request), request.skip_bad_rows)
        skipped += bad
        notes += left_out
    if len(tables) == 1:
        tables = _tables_by_split(tables["train"])
    words = {split: _labels(table, columns) for split, table in tables.items()}
    if not train.named and SPLIT not in train.columns and request.header is None:
        _refuse_lost_header(train, words["train"])
    classes, names = _classes(train, words["train"], request, columns)
    splits = {
        split: _examples(table, columns, words[split], classes, clean, request.allow_empty)
        for split, table in tables.items()
    }
    needed = SPLITS if hold_out else SPLITS[:2]
    if missing := [split for split in needed if split not in splits]:
        made, note = splitter(splits["train"], missing, seed)
        splits |= made
        _refuse_empty(train.path, splits, missing)
        notes.append(note)
    splits = {split: splits[split] for split in SPLITS if split in splits}
    unseen = set(range(len(names))) - {example.label for example in splits["train"]}
    if unseen:
        notes.append(f"no training example has the class {', '.join(names[place] for place in sorted(unseen))}.")
    return LabelledSet(
        name or str(train.path), names, splits, notes=tuple(notes), columns=columns, skipped=tuple(skipped)
    )


def _reading(table: FileTable, train: FileTable) -> tuple[str, ...]:
    """How a file was read; of the other splits only what differs."""
    return tuple(f"{table.path.name}: {note}" for note in table.notes if table is train or note not in train.notes)


def _row_check(columns: Columns, request: ColumnRequest) -> Callable[[FileTable, FileRow], None]:
    def check(table: FileTable, row: FileRow) -> None:
        label_of(table, row, columns.label)
        for column in (columns.text, columns.pair):
            if column is not None:
                text_of(table, row, column, request.allow_empty)

    return check


def _refuse_lost_header(table: FileTable, words: list[str]) -> None:
    """Refuse to guess about a first row whose label nothing else has, as a header of unusual names would be."""
    if len(words) >= FEWEST and words.count(words[0]) == 1 and len(set(words)) <= len(words) / 2:
        first = table.rows[0]
        raise UserError(
            f"{table.where(first)} is a header or an example: its label {words[0]!r} occurs nowhere else; give "
            "--header or --no-header."
        )


def _tables_by_split(table: FileTable) -> dict[str, FileTable]:
    """The tables of a file with a column "split", by split; without that column all of it is train."""
    column = next((name for name in table.columns if name.lower() == SPLIT), None)
    if column is None:
        return {"train": table}
    parts: dict[str, list[FileRow]] = {}
    for row in table.rows:
        word = str(_field(table, row, column))
        split = SPELLINGS.get(word.strip().lower())
        if split is None:
            raise UserError(f"{table.where(row)}: expected train, dev or test in {column!r}, got {word!r}.")
        parts.setdefault(split, []).append(row)
    if "train" not in parts:
        raise UserError(f"{table.path}: no row has the split train.")
    return {split: table._replace(rows=rows) for split, rows in parts.items()}


def _classes(
    table: FileTable, words: list[str], request: ColumnRequest, columns: Columns
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
            "rows: name the column of the label with --label."
        )
    classes = find_classes(different)
    return classes, tuple(classes)


def _labels(table: FileTable, columns: Columns) -> list[str]:
    return [label_of(table, row, columns.label) for row in table.rows]


def has_labels(table: FileTable, column: str) -> bool:
    """Whether a row has a label; those of a published test set are often kept back: no column, nothing in it, or -1."""
    return any(row.fields.get(column) not in (*UNKNOWN, HIDDEN, str(HIDDEN)) for row in table.rows)


def label_of(table: FileTable, row: FileRow, column: str) -> str:
    value = _field(table, row, column)
    word = label_word(value)
    if word is None:
        what = "the label is empty" if value is None or not str(value).strip() else f"{value!r} is not a label"
        raise UserError(f"{table.where(row)}: {what}: give a word, a whole number, true or false in {column!r}.")
    return word


def _examples(
    table: FileTable,
    columns: Columns,
    words: list[str],
    classes: Mapping[str, int],
    clean: Callable[[str], str],
    allow_empty: bool,
) -> list[LabelledText]:
    examples = []
    for row, word in zip(table.rows, words, strict=True):
        if word not in classes:
            raise UserError(f"{table.where(row)}: the label {word!r} is not among {', '.join(classes)}.")
        pair = clean(text_of(table, row, columns.pair, allow_empty)) if columns.pair else None
        examples.append(LabelledText(clean(text_of(table, row, columns.text, allow_empty)), classes[word], pair))
    return examples


def text_of(table: FileTable, row: FileRow, column: str, allow_empty: bool = False) -> str:
    value = _field(table, row, column)
    if value is None or not (allow_empty or str(value).strip()):
        raise UserError(f"{table.where(row)}: the text in {column!r} is empty: fill it or remove the row.")
    if not isinstance(value, str):
        raise UserError(f"{table.where(row)}: expected a text in {column!r}, got {value!r:.40}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UserError(f"{table.where(row)}: the text in {column!r} has half of a surrogate pair.") from None
    return value


def _field(table: FileTable, row: FileRow, column: str) -> Any:
    if column not in row.fields:
        raise UserError(f"{table.where(row)} has no column {column!r}: its columns are {', '.join(row.fields)}.")
    return row.fields[column]


def _refuse_empty(path: Path, splits: Mapping[str, list[LabelledText]], made: list[str]) -> None:
    empty = [split for split in made if not splits[split]]
    if empty:
        raise UserError(
            f"{path} has too few rows to take {' and '.join(empty)} from: give one file per split, "
            f"or at least {len(made) + 1} rows per class."
        )
