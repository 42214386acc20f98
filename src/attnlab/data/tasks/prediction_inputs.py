"""Texts to predict: typed, one per line, or rows of a file; if they have labels, predictions can be scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base.errors import UserError
from attnlab.base.files import read_text
from attnlab.data.tasks.columns import Columns, choose_text_columns
from attnlab.data.tasks.files import label_of, text_of
from attnlab.data.tasks.labelled import LabelledText, is_whole, label_word, named_classes
from attnlab.data.tasks.row_stream import stream_rows
from attnlab.data.tasks.tables import ColumnRequest, FileRow, FileTable

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


class Given(NamedTuple):
    """An example with the fields of its row."""

    example: LabelledText
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class InputFile:
    """The texts of a file, read row by row as often as they are asked for."""

    head: FileTable
    rows: Callable[[], Iterator[FileRow]]
    text: str
    pair: str | None
    label: str | None
    places: Mapping[str, int]
    """The class of each label."""
    count: int
    labelled: int
    """Rows with a label."""
    clean: Callable[[str], str] = str

    def __iter__(self) -> Iterator[Given]:
        for row in self.rows():
            word = label_word(row.fields.get(self.label)) if self.label is not None else None
            yield Given(
                LabelledText(
                    self.clean(text_of(self.head, row, self.text)),
                    NO_LABEL if word is None else self.places.get(word, NO_LABEL),
                    self.clean(text_of(self.head, row, self.pair)) if self.pair else None,
                ),
                row.fields,
            )


def open_file(
    path: Path,
    classes: Sequence[str],
    columns: Columns | None,
    clean: Callable[[str], str] = str,
    numbered: bool = False,
    labelled: bool = False,
) -> InputFile:
    """The texts of a file, once all rows have been looked at: a .txt has one text per line, other files have columns.

    Columns are found as in training. `numbered`: whether the labels in training were numbers that stood for the
    classes in their order; `labelled`: whether the file must have labels, so that a .txt has columns too.
    """
    paired = columns is not None and columns.pair is not None
    if path.suffix.lower() == ".txt" and not labelled:
        return _lines(path, paired)
    names = (columns.text, columns.pair, columns.label) if columns is not None else (None, None, None)
    stream = stream_rows(path, ColumnRequest(*names), least=1)
    text, pair, label = choose_text_columns(stream.head, columns)
    count, with_label, first = 0, 0, dict[str, FileRow]()
    for row in stream.rows():
        count += 1
        for column in (text, pair):
            if column is not None:
                text_of(stream.head, row, column)
        if label is not None and _is_given(row.fields.get(label), classes):
            with_label += 1
            first.setdefault(label_of(stream.head, row, label), row)
    places = _places(stream.head, label, first, classes, numbered) if label is not None and first else {}
    return InputFile(stream.head, stream.rows, text, pair, label if first else None, places, count, with_label, clean)


def from_file(
    path: Path,
    classes: Sequence[str],
    columns: Columns | None,
    clean: Callable[[str], str] = str,
    numbered: bool = False,
    labelled: bool = False,
) -> Texts:
    """All texts of a file at once."""
    file = open_file(path, classes, columns, clean, numbered, labelled)
    return Texts([given.example for given in file], file.labelled > 0)


def _lines(path: Path, paired: bool) -> InputFile:
    texts = from_lines(read_text(path), str(path), paired)
    rows = [
        FileRow(number, {"text": example.text} | ({"pair": example.pair} if paired else {}))
        for number, example in enumerate(texts.examples, start=1)
    ]
    head = FileTable(path, list(rows[0].fields), rows, named=False)
    return InputFile(head, lambda: iter(rows), "text", "pair" if paired else None, None, {}, len(rows), 0)


def _is_given(value: Any, classes: Sequence[str]) -> bool:
    """Whether a label is there: an empty one is not, nor is -1, as those of published test sets often are."""
    word = label_word(value)
    return (word is not None and (word != "-1" or "-1" in classes)) or (word is None and bool(str(value or "").strip()))


def _places(
    table: FileTable, column: str, first: Mapping[str, FileRow], classes: Sequence[str], numbered: bool
) -> Mapping[str, int]:
    """The class of each label, of which the first row is given."""
    if not numbered and all(map(is_whole, first)) and not any(map(is_whole, classes)):
        word, row = next(iter(first.items()))
        raise UserError(
            f"{table.where(row)}: the label {word!r} in {column!r} is a number, and the classes are "
            f"{', '.join(classes)}: write these names into the file, or rename the column if it is not the label."
        )
    places = named_classes(set(first), classes, str(table.path))
    for word, row in first.items():
        if word not in places:
            raise UserError(
                f"{table.where(row)}: the label {word!r} in {column!r} is not among {', '.join(classes)}: "
                "correct it, or rename the column if it is not the label."
            )
    return places


def _check_pairs(given: bool, paired: bool, flag: str) -> None:
    if paired and not given:
        raise UserError(f"the classifier reads pairs of texts: give the second text of each with {flag}.")
    if given and not paired:
        raise UserError(f"the classifier reads single texts: leave out {flag}.")
