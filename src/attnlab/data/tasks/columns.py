"""Which column of a table is the text, which the label: by name, by what the user said, or by what is in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from attnlab.base.errors import UserError
from attnlab.data.tasks.tables import SPLIT, ColumnRequest, FileTable

PAIRS = (
    ("question", "passage"),
    ("question", "context"),
    ("question", "sentence"),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("text", "pair"),
)
TEXTS = (
    "text",
    "sentence",
    "review",
    "comment",
    "content",
    "tweet",
    "message",
    "snippet",
    "body",
    "document",
    "question",
    "title",
)
PARTS = ("question", "title")
"""Of the above, those that are often one of two texts."""
LABELS = (
    "label",
    "labels",
    "class",
    "target",
    "stars",
    "answer",
    "sentiment",
    "category",
    "rating",
    "gold_label",
    "polarity",
    "is_duplicate",
)
USUAL = {name for pair in PAIRS for name in pair} | {*TEXTS, *LABELS, SPLIT}
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")
ENOUGH = 5
"""Rows from which on the content of a column says what it is."""
LONGEST_LABEL = 60


class Columns(NamedTuple):
    """The names of the columns of a file."""

    text: str
    label: str
    pair: str | None

    @classmethod
    def stored(cls, values: object) -> Columns | None:
        """As a run or an export has stored them; raises a ValueError for anything else."""
        if not values:
            return None
        if not isinstance(values, dict) or not {"text", "label", "pair"} == set(values):
            raise ValueError("columns are not stored by the names text, label and pair")
        names = [values["text"], values["label"], values["pair"] or ""]
        if not all(isinstance(name, str) for name in names):
            raise ValueError("a column has no name")
        return cls(**values)

    def __str__(self) -> str:
        pair = f", pair from {self.pair!r} (--pair)" if self.pair else ""
        return f"text from column {self.text!r} (--text){pair}, label from {self.label!r} (--label)"


@dataclass(frozen=True)
class _Content:
    """What the fields of a column look like."""

    name: str
    words: tuple[str, ...]

    @property
    def different(self) -> int:
        return len(set(self.words))

    @property
    def length(self) -> float:
        return fmean(map(len, self.words))

    @property
    def numbers(self) -> bool:
        return all(_NUMBER.fullmatch(word) for word in self.words)

    @property
    def counts_rows(self) -> bool:
        """Numbers that hardly repeat: an index or an id."""
        return self.numbers and self.different > 0.9 * len(self.words)

    @property
    def text(self) -> bool:
        """Different and long enough, and of words: codes, links, dates and numbers are no texts."""
        if self.numbers or self.different <= 0.3 * len(self.words) or self.length < 8:
            return False
        prose = sum(not word.isascii() or len(word.split()) > 1 for word in self.words)
        digits = sum(character.isdigit() for word in self.words for character in word)
        return prose > len(self.words) / 2 and digits < 0.3 * sum(map(len, self.words))

    @property
    def label(self) -> bool:
        return 2 <= self.different <= len(self.words) / 2 and max(map(len, self.words)) <= LONGEST_LABEL

    @property
    def complete(self) -> bool:
        return "" not in self.words

    def same_classes(self, other: _Content) -> bool:
        pairs = set(zip(self.words, other.words, strict=True))
        return len(pairs) == self.different == other.different


def choose_columns(table: FileTable, request: ColumnRequest) -> Columns:
    """The columns of a file; raises where neither names nor contents decide."""
    for name in (request.text, request.pair, request.label):
        if name is not None and name not in table.columns:
            raise UserError(f"{table.path} has no column {name!r}: its columns are {', '.join(table.columns)}.")
    named = {name.lower(): name for name in table.columns}
    text, label, pair = request.text, request.label, request.pair
    if label is None:
        usual = [named[name] for name in LABELS if name in named and named[name] not in (text, pair)]
        label = _in_words(table, _only_usual(table, usual), (text, pair)) if usual else None
    if text is None and pair is None:
        both = next((couple for couple in PAIRS if set(couple) <= named.keys() - {str(label).lower()}), None)
        text, pair = (named[both[0]], named[both[1]]) if both else (None, None)
    if text is None:
        text = next((named[name] for name in TEXTS if name in named and named[name] not in (label, pair)), None)
        if text is not None and text.lower() in PARTS and any(each.text for each in _contents(table, (text, label))):
            text = None  # beside another text it is hardly all there is to read
    return _by_content(table, text, label, pair, paired=request.text is None and request.pair is None)


def _contents(table: FileTable, taken: Sequence[str | None]) -> list[_Content]:
    return [
        _Content(name, tuple(_word(row.fields.get(name)) for row in table.rows))
        for name in table.columns
        if name not in taken and name.lower() != SPLIT
    ]


def _word(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _in_words(table: FileTable, label: str, taken: Sequence[str | None]) -> str:
    """A column that has the same classes as a column of numbers, in words; else the column itself."""
    numbers = _Content(label, tuple(_word(row.fields.get(label)) for row in table.rows))
    if len(table.rows) < ENOUGH or not numbers.numbers or not numbers.label:
        return label
    others = _contents(table, (label, *taken))
    twins = (other for other in others if other.label and other.complete and not other.numbers)
    return next((twin.name for twin in twins if numbers.same_classes(twin)), label)


def _only_usual(table: FileTable, usual: Sequence[str]) -> str:
    """The one column that is called as a label is; several are asked about unless they have the same classes."""
    found = [content for content in _contents(table, ()) if content.name in usual and content.label]
    if len(usual) > 1 and len(table.rows) >= ENOUGH and len(_distinct(found)) > 1:
        raise UserError(_open(table, "label", [f"--label {content.name!r}" for content in found]))
    return usual[0]


def _distinct(contents: Sequence[_Content]) -> list[_Content]:
    """Without those that have the same classes as an earlier one."""
    kept: list[_Content] = []
    for content in contents:
        if not any(content.same_classes(other) for other in kept):
            kept.append(content)
    return kept


def _by_content(table: FileTable, text: str | None, label: str | None, pair: str | None, paired: bool) -> Columns:
    """Fill in what the names left open: the only column left, or the only one that looks like it."""
    left = _contents(table, (text, label, pair))
    if text is None and label is None and len(left) == 2 and pair is None:
        if left[0].different != left[1].different:
            few, many = sorted(left, key=lambda content: content.different)
            text, label = many.name, few.name
    elif len(left) == 1 and (text is None) != (label is None):
        text, label = text or left[0].name, label or left[0].name
    if len(table.rows) >= ENOUGH:
        if label is None:
            label = _only_label(table, [content for content in left if content.label and not content.counts_rows])
        if text is None:
            texts = [content for content in left if content.text and content.name != label]
            text, second = _only_text(table, texts, paired and pair is None)
            pair = pair or second
    if text is None or label is None:
        what, flag = ("text", "--text") if text is None else ("label", "--label")
        raise UserError(
            f"{table.path}: no column is clearly the {what} among {', '.join(table.columns)}: name it with {flag}."
        )
    return Columns(text, label, pair)


def _only_label(table: FileTable, labels: list[_Content]) -> str | None:
    labels = [content for content in labels if content.complete] or labels
    labels = [
        content
        for content in labels
        if not (content.numbers and any(not other.numbers and content.same_classes(other) for other in labels))
    ]
    if len(labels) > 1:
        raise UserError(_open(table, "label", [f"--label {content.name!r}" for content in labels]))
    return labels[0].name if labels else None


def _only_text(table: FileTable, texts: list[_Content], paired: bool) -> tuple[str | None, str | None]:
    if len(texts) == 2 and paired and _a_pair(table, *texts):
        return texts[0].name, texts[1].name
    if len(texts) > 1:
        both = f"--text {texts[0].name!r} --pair {texts[1].name!r}"
        options = [f"--text {content.name!r}" for content in texts] + ([both] if paired and len(texts) == 2 else [])
        raise UserError(_open(table, "text", options))
    return (texts[0].name if texts else None), None


def _a_pair(table: FileTable, one: _Content, two: _Content) -> bool:
    """Two texts with alike names; without names, two neighbours of about the same length."""
    if table.named:
        return _alike(one.name, two.name)
    neighbours = table.columns.index(two.name) - table.columns.index(one.name) == 1
    return neighbours and max(one.length, two.length) < 2 * min(one.length, two.length)


def _alike(one: str, two: str) -> bool:
    """Names that differ in a number or a last letter only, such as "#1 String" and "#2 String"."""

    def bare(name: str) -> str:
        return re.sub(r"(\d+|[_ -]?[ab])(?=$|\W)", "", name.lower())

    return one != two and bare(one) == bare(two)


def _open(table: FileTable, what: str, options: Sequence[str]) -> str:
    return f"{table.path}: the {what} may be any of {len(options)}: give {' or '.join(options)}."


def choose_text_columns(table: FileTable, trained: Columns | None) -> tuple[str, str | None, str | None]:
    """Text, pair and label columns of a file to predict: the names used in training, else usual names.

    The label may be missing. `trained` are the columns of the training file; with a pair if the classifier reads pairs.
    """
    if len(table.columns) == 1 and (trained is None or trained.pair is None):
        return table.columns[0], None, None
    named = {name.lower(): name for name in table.columns}
    label = trained.label if trained is not None and trained.label in table.columns else None
    if label is None:
        label = next((named[name] for name in LABELS if name in named), None)
    if (
        trained is not None
        and {trained.text, trained.pair or trained.text} <= set(table.columns)
        and trained.text != label
    ):
        return trained.text, trained.pair, label
    if trained is not None and trained.pair is not None:
        both = next((couple for couple in PAIRS if set(couple) <= named.keys()), None)
        if both is None:
            raise UserError(
                f"{table.path} has no columns {trained.text!r} and {trained.pair!r}, which the classifier reads: "
                f"its columns are {', '.join(table.columns)}."
            )
        return named[both[0]], named[both[1]], label if label not in (named[both[0]], named[both[1]]) else None
    text = next((named[name] for name in TEXTS if name in named and named[name] != label), None)
    left = [name for name in table.columns if name != label and name.lower() != SPLIT]
    if text is None and len(left) == 1:
        text = left[0]
    if text is None:
        raise UserError(
            f"{table.path}: no column is clearly the text among {', '.join(table.columns)}: name it "
            f"{trained.text if trained and not trained.text.isdecimal() else 'text'!r} in a first row."
        )
    return text, None, label
