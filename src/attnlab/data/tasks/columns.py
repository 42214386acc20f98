"""Which column is the text, its pair, the label: as asked for, or found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from attnlab.base.errors import UserError

if TYPE_CHECKING:
    from attnlab.data.tasks.table import Table

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
SPLIT = "split"
_KNOWN = {name for pair in PAIRS for name in pair} | {*TEXTS, *LABELS, SPLIT}


@dataclass(frozen=True)
class Request:
    """What the user says about a file; None: to be found."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    classes: tuple[str, ...] = ()
    """Names of the classes, in order."""
    header: bool | None = None


class Columns(NamedTuple):
    text: str
    label: str
    pair: str | None

    def __str__(self) -> str:
        pair = f", pair from {self.pair!r}" if self.pair else ""
        return f"text from column {self.text!r}{pair}, label from {self.label!r}"


def is_header(cells: Sequence[str], request: Request) -> bool:
    """Whether a first row names columns: it has a name we know, or one that was asked for."""
    if request.header is not None:
        return request.header
    asked = {name for name in (request.text, request.pair, request.label) if name and not name.isdecimal()}
    return any(cell.strip().lower() in _KNOWN or cell.strip() in asked for cell in cells)


def choose(table: Table, request: Request) -> Columns:
    """The columns of a file; refuses to guess where names leave it open."""
    for name in (request.text, request.pair, request.label):
        if name is not None and name not in table.columns:
            raise UserError(f"{table.path} has no column {name!r}: its columns are {', '.join(table.columns)}.")
    named = {name.lower(): name for name in table.columns}
    text, label, pair = request.text, request.label, request.pair
    if label is None:
        label = next((named[name] for name in LABELS if name in named and named[name] not in (text, pair)), None)
    if text is None and pair is None:
        both = next((couple for couple in PAIRS if set(couple) <= named.keys() - {str(label).lower()}), None)
        text, pair = (named[both[0]], named[both[1]]) if both else (None, None)
    if text is None:
        text = next((named[name] for name in TEXTS if name in named and named[name] not in (label, pair)), None)
    return _fill(table, text, label, pair)


def _fill(table: Table, text: str | None, label: str | None, pair: str | None) -> Columns:
    """What is still open, where only one column is left for it; of two without names the label is the less varied."""
    left = [name for name in table.columns if name not in (text, label, pair) and name.lower() != SPLIT]
    if text is None and label is None and not table.named and len(left) == 2 and pair is None:
        kinds = [len({row.fields[name] for row in table.rows}) for name in left]
        if kinds[0] != kinds[1]:
            label, text = (left[0], left[1]) if kinds[0] < kinds[1] else (left[1], left[0])
    elif len(left) == 1 and (text is None) != (label is None):
        text, label = text or left[0], label or left[0]
    if text is None or label is None:
        what, flag = ("text", "--text") if text is None else ("label", "--label")
        raise UserError(
            f"{table.path}: no column is clearly the {what} among {', '.join(table.columns)}: name it with {flag}."
        )
    return Columns(text, label, pair)


def choose_texts(table: Table, own: Columns | None) -> tuple[str, str | None, str | None]:
    """Text, pair and label of a file to predict: what they were called in training, else found by name.

    A label may be there or not. `own` says as well whether there are pairs.
    """
    named = {name.lower(): name for name in table.columns}
    label = own.label if own is not None and own.label in table.columns else None
    if label is None:
        label = next((named[name] for name in LABELS if name in named), None)
    if own is not None and {own.text, own.pair or own.text} <= set(table.columns) and own.text != label:
        return own.text, own.pair, label
    if own is not None and own.pair is not None:
        both = next((couple for couple in PAIRS if set(couple) <= named.keys()), None)
        if both is None:
            raise UserError(
                f"{table.path} has no columns {own.text!r} and {own.pair!r}, which the classifier reads: "
                f"its columns are {', '.join(table.columns)}."
            )
        return named[both[0]], named[both[1]], label if label not in (named[both[0]], named[both[1]]) else None
    text = next((named[name] for name in TEXTS if name in named and named[name] != label), None)
    left = [name for name in table.columns if name != label and name.lower() != SPLIT]
    if text is None and len(left) == 1:
        text = left[0]
    if text is None:
        raise UserError(
            f"{table.path}: no column is clearly the text among {', '.join(table.columns)}: call it "
            f"{own.text if own and not own.text.isdecimal() else 'text'!r} in a first row."
        )
    return text, None, label
