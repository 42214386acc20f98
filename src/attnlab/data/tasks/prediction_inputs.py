"""Texts to predict: typed, one per line, or rows of a file; if they have labels, predictions can be scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from attnlab.base.errors import UserError
from attnlab.base.files import read_text
from attnlab.data.tasks.columns import Columns, choose_text_columns
from attnlab.data.tasks.files import label_of, text_of
from attnlab.data.tasks.labelled import LabelledText, is_whole, label_word, named_classes
from attnlab.data.tasks.read_table import FORMATS, read_table
from attnlab.data.tasks.tables import ColumnRequest, FileTable

NO_LABEL = -1


class Texts(NamedTuple):
    """Examples, whose labels are NO_LABEL where none are given."""

    examples: list[LabelledText]
    labelled: bool = False


def from_arguments(texts: Sequence[str], pairs: Sequence[str], paired: bool) -> Texts:
    """The texts given on the command line."""
    if pairs and len(pairs) != len(texts):
        raise UserError(
            f"--text is given {len(texts)} times and --pair {len(pairs)} times: give one --pair per --text."
        )
    _check_pairs(bool(pairs), paired, "--pair")
    for flag, given in (("--text", texts), ("--pair", pairs)):
        for place, text in enumerate(given, start=1):
            which = f" number {place}" if len(given) > 1 else ""
            if not text.strip():
                raise UserError(f"{flag}{which} is empty: give a text.")
            if not text.isascii() and text.encode("utf-8", "ignore").decode("utf-8") != text:
                raise UserError(f"{flag}{which} is not UTF-8: give a text in UTF-8.")
    seconds: Sequence[str | None] = pairs or [None] * len(texts)
    return Texts([LabelledText(text, NO_LABEL, pair) for text, pair in zip(texts, seconds, strict=True)])


def from_lines(text: str, where: str, paired: bool) -> Texts:
    """One text per line, or one pair of texts separated by a tab."""
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    examples = []
    for number, line in enumerate(lines, start=1):
        parts = line.split("\t") if paired else [line]
        if not all(part.strip() for part in parts):
            raise UserError(f"{where}, line {number} is empty: give one text per line.")
        if paired and len(parts) != 2:
            raise UserError(
                f"{where}, line {number} is not a pair of texts: give two texts separated by one tab."
                " The classifier reads pairs."
            )
        examples.append(LabelledText(parts[0], NO_LABEL, parts[1] if paired else None))
    return Texts(examples)


def from_file(
    path: Path,
    classes: Sequence[str],
    columns: Columns | None,
    clean: Callable[[str], str] = str,
    numbered: bool = False,
) -> Texts:
    """The texts of a file: a .txt has one text per line, other files have columns, found as in training.

    `numbered`: whether the labels in training were numbers that stood for the classes in their order.
    """
    paired = columns is not None and columns.pair is not None
    if path.suffix.lower() == ".txt":
        return from_lines(read_text(path), str(path), paired)
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{path}: expected a file that ends in .txt, {', '.join(FORMATS)}.")
    names = (columns.text, columns.pair, columns.label) if columns is not None else (None, None, None)
    table = read_table(path, ColumnRequest(*names), least=1)
    if table.bad:  # a prediction for every row, or none
        raise UserError(table.bad[0].sentence)
    text, pair, label = choose_text_columns(table, columns)
    labels = _labels(table, label, classes, numbered) if label is not None else None
    examples = [
        LabelledText(
            clean(text_of(table, row, text)),
            labels[n] if labels else NO_LABEL,
            clean(text_of(table, row, pair)) if pair else None,
        )
        for n, row in enumerate(table.rows)
    ]
    return Texts(examples, labels is not None)


def _labels(table: FileTable, column: str, classes: Sequence[str], numbered: bool) -> list[int] | None:
    """The indices of the right classes; None if the column is empty."""
    if all(label_word(row.fields.get(column)) is None for row in table.rows):
        return None
    words = [label_of(table, row, column) for row in table.rows]
    if not numbered and all(map(is_whole, words)) and not any(map(is_whole, classes)):
        raise UserError(
            f"{table.where(table.rows[0])}: the label {words[0]!r} in {column!r} is a number, and the classes are "
            f"{', '.join(classes)}: write these names into the file, or rename the column if it is not the label."
        )
    places = named_classes(set(words), classes, str(table.path))
    for row, word in zip(table.rows, words, strict=True):
        if word not in places:
            raise UserError(
                f"{table.where(row)}: the label {word!r} in {column!r} is not among {', '.join(classes)}: "
                "correct it, or rename the column if it is not the label."
            )
    return [places[word] for word in words]


def _check_pairs(given: bool, paired: bool, flag: str) -> None:
    if paired and not given:
        raise UserError(f"the classifier reads pairs of texts: give the second text of each with {flag}.")
    if given and not paired:
        raise UserError(f"the classifier reads single texts: leave out {flag}.")
