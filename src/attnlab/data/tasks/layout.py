"""How a text file lays out its rows: a separator with or without quotes, or a label as the first word of a line.

The layout is the one under which the rows have equally many fields. Where two fit, the file is not guessed at: the
readings are shown with the option for each.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from attnlab.base.errors import UserError
from attnlab.data.text.reading import numbered_lines

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bars": "|||", "bar": "|"}
QUOTES = {"double": '"', "single": "'", "none": ""}
FIRST_WORD, FASTTEXT = "word", "fasttext"
_BLANK = re.compile(r"[ \t]+")
PREFIX = "__label__"
SAMPLE = 1 << 20
"""Characters from the start of a file on which its layout is decided."""
LONGEST_FIELD = 1 << 28
"""Characters of a quoted field in a file that is read row by row."""
NEARLY_ALL = 0.9
ALIKE = 0.98
"""The share of the rows that must have equally many fields."""


class Cells(NamedTuple):
    line: int
    cells: list[str]


@dataclass(frozen=True)
class Layout:
    separator: str
    """A name in SEPARATORS, or "word" (the label is the first word) or "fasttext" (it begins with __label__)."""
    quote: str = "none"
    """A name in QUOTES."""

    def __str__(self) -> str:
        if self.separator == FIRST_WORD:
            return "label as first word"
        if self.separator == FASTTEXT:
            return f"label as first word after {PREFIX}"
        name = SEPARATORS[self.separator] if self.separator.startswith("bar") else self.separator
        return f"separated by {name}, {'no' if self.quote == 'none' else self.quote} quotes"

    @property
    def option(self) -> str:
        return f"--separator {self.separator}"


def rows_of(path: Path, text: str, layout: Layout) -> Iterator[Cells]:
    """The fields of every row of a text, each row with the line in which it begins."""
    is_quoted = bool(QUOTES[layout.quote]) and layout.separator in SEPARATORS
    return rows_in(path, io.StringIO(text, newline="" if is_quoted else "\n"), layout, len(text))


def rows_in(path: Path, lines: Iterable[str], layout: Layout, longest: int = LONGEST_FIELD) -> Iterator[Cells]:
    """The same from lines with their ends."""
    if layout.separator in (FIRST_WORD, FASTTEXT):
        return _first_words(lines)
    separator, quote = SEPARATORS[layout.separator], QUOTES[layout.quote]
    if not quote:
        return (Cells(number, line.split(separator)) for number, line in _numbered(lines))
    return _quoted(path, lines, separator, quote, longest)


def _numbered(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    bare = (line.removesuffix("\n").removesuffix("\r") for line in lines)
    return ((number, line) for number, line in enumerate(bare, start=1) if line.strip())


def _first_words(lines: Iterable[str]) -> Iterator[Cells]:
    """Label and text; a line with several fastText labels has a field for each."""
    for number, line in _numbered(lines):
        word, rest = _first_word(line)
        cells = [word.removeprefix(PREFIX)]
        while rest.startswith(PREFIX) and word.startswith(PREFIX):
            word, rest = _first_word(rest)
            cells.append(word.removeprefix(PREFIX))
        yield Cells(number, [*cells, rest] if rest else [word])


def _first_word(line: str) -> tuple[str, str]:
    word, *rest = _BLANK.split(line.strip(), maxsplit=1)
    return word, rest[0].strip() if rest else ""


def _quoted(path: Path, lines: Iterable[str], separator: str, quote: str, longest: int) -> Iterator[Cells]:
    csv.field_size_limit(max(csv.field_size_limit(), longest))  # allow long texts
    if len(separator) > 1:
        raise UserError(f"{path}: fields separated by {separator} cannot be quoted: give --quote none.")
    reader = csv.reader(lines, delimiter=separator, quotechar=quote, strict=True)
    start = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield Cells(start, cells)
            start = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {start} is not a row of a CSV ({error}): check its quotes, or give --quote none."
        ) from None


class _Fit(NamedTuple):
    layout: Layout
    width: int
    share: float
    """Share of the rows with `width` fields."""
    rows: int

    @property
    def good(self) -> bool:
        return self.width > 1 and self.share >= (ALIKE if self.rows >= 50 else 1)


def find_layout(
    path: Path, text: str, ending: str, separator: str | None = None, quote: str | None = None, cut: bool = False
) -> Layout:
    """The layout of a text, from what the user gave and what the rows allow.

    `ending` is the extension of the file, which decides where the rows leave it open; `cut`: whether the text is only
    the beginning of the file.
    """
    for flag, given, known in (
        ("--separator", separator, (*SEPARATORS, FIRST_WORD, FASTTEXT)),
        ("--quote", quote, QUOTES),
    ):
        if given is not None and given not in known:
            raise UserError(f"{flag} {given} is not known: choose {', '.join(known)}.")
    if separator in (FIRST_WORD, FASTTEXT):
        return Layout(separator)
    sample, cut = _sample(text), cut or len(text) > SAMPLE
    lines = [line for _, line in numbered_lines(sample)]
    if separator is None and sum(line.startswith(PREFIX) for line in lines) >= ALIKE * len(lines):
        return Layout(FASTTEXT)
    names = [separator] if separator is not None else [name for name, mark in SEPARATORS.items() if mark in sample]
    fits = [_best_quote(path, sample, name, quote, cut) for name in names]
    good = [fit for fit in fits if fit.good]
    if any(fit.layout.separator == "bars" for fit in good):
        good = [fit for fit in good if fit.layout.separator != "bar"]
    if separator is not None:
        return fits[0].layout
    certain = [fit for fit in good if not _punctuation(sample, fit.layout)]
    if not certain and _labels_first(lines):
        return Layout(FIRST_WORD)
    if chosen := certain or good:
        return chosen[0].layout if len(chosen) == 1 else _decide(path, sample, chosen, ending)
    if ending == ".csv":
        return Layout("comma", quote or "double")
    if ending == ".tsv" or not fits:
        return Layout("tab", quote or "none")
    return max(fits, key=lambda fit: (fit.width > 1, fit.share)).layout


def _sample(text: str) -> str:
    """The beginning of a text, up to the end of a line."""
    if len(text) <= SAMPLE:
        return text
    cut = text.rfind("\n", 0, SAMPLE)
    return text[: cut + 1] if cut > 0 else text[:SAMPLE]


def _best_quote(path: Path, sample: str, separator: str, given: str | None, cut: bool) -> _Fit:
    """The way of quoting that fits a separator.

    Behind commas and semicolons quotes are those of a CSV, and one that is never closed is a fault. Behind tabs and
    bars a quote is a character of the text, unless the rows are alike only with quotes, or all of a column is in them.
    """
    if given is not None:
        return _fit(path, sample, Layout(separator, given), cut)
    plain = _fit(path, sample, Layout(separator), cut)
    quotes = ("double", "single") if len(SEPARATORS[separator]) == 1 else ()
    quoted = [_fit(path, sample, Layout(separator, quote), cut) for quote in quotes]
    for fit in quoted:
        if fit.good and (not plain.good or _enclosed(sample, fit.layout, plain.width)):
            return fit
    if separator in ("comma", "semicolon"):
        usual = quoted[0]
        return usual if usual.rows or not plain.good else plain._replace(layout=usual.layout)
    return plain


def _fit(path: Path, sample: str, layout: Layout, cut: bool) -> _Fit:
    widths: list[int] = []
    line = 0
    try:
        for row in rows_of(path, sample, layout):
            widths.append(len(row.cells))
            line = row.line
    except UserError:
        if not cut or line < NEARLY_ALL * sample.count("\n"):  # the end of a sample may be within a quoted field
            return _Fit(layout, 0, 0.0, 0)
    width, count = Counter(widths).most_common(1)[0] if widths else (0, 0)
    return _Fit(layout, width, count / max(len(widths), 1), len(widths))


def _enclosed(sample: str, layout: Layout, width: int) -> bool:
    """Whether one column has the quote around every field, as a program writes that quotes all texts."""
    quote, mark = QUOTES[layout.quote], SEPARATORS[layout.separator]
    cells = [line.split(mark) for _, line in numbered_lines(sample)]
    rows = [row for row in cells if len(row) == width]
    body = rows[1:] if len(rows) > 2 else rows  # a header may be without quotes
    return any(
        all(len(cell) > 1 and cell[0] == quote == cell[-1] for cell in column) for column in zip(*body, strict=True)
    )


def _punctuation(sample: str, layout: Layout) -> bool:
    """Whether a separator is always followed by a blank, as it is between words."""
    mark = SEPARATORS[layout.separator]
    return layout.separator in ("comma", "semicolon") and sample.count(f"{mark} ") > 0.9 * sample.count(mark)


def _decide(path: Path, sample: str, good: Sequence[_Fit], ending: str) -> Layout:
    if ending == ".tsv" and any(fit.layout.separator == "tab" for fit in good):
        return next(fit.layout for fit in good if fit.layout.separator == "tab")
    readings = []
    for fit in good:
        last = list(itertools.islice(rows_of(path, sample, fit.layout), 2))[-1]
        fields = " | ".join(f"{cell.strip():.20}" for cell in last.cells)
        readings.append(f"{fit.layout} with {fit.layout.option} (line {last.line}: {fields})")
    raise UserError(f"{path} can be read in {len(good)} ways: {'; or '.join(readings)}.")


def _labels_first(lines: Sequence[str]) -> bool:
    """Whether the first words of the lines are labels: few, and hardly one of them alone, as they would be in prose."""
    words = Counter(line.split(None, 1)[0] for line in lines if len(line.split(None, 1)) == 2)
    total, once = sum(words.values()), sum(count == 1 for count in words.values())
    return (
        len(words) > 1 and total >= max(ALIKE * len(lines), 10) and total >= 5 * len(words) and once <= 0.1 * len(words)
    )
