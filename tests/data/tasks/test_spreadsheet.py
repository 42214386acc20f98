"""A CSV of predictions is safe in a spreadsheet and reads back as it was."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data.tasks.read_table import read_table
from attnlab.data.tasks.spreadsheet import csv_text
from attnlab.data.tasks.tables import ColumnRequest

COLUMNS = ["text", "label", "predicted", "probability"]
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
FORMULAS = [f"{start}1+1" for start in STARTS] + ["'=1", "''-x", '=HYPERLINK("http://x","y"),z\n2']
PLAIN = ["'tis", "'", "''", "1-2", "a=b", " =1", "", "two\nlines", 'a "quote", and more', "a\u2028b\u0085c"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_begins_as_a_formula(formula: str) -> None:
    text = csv_text(COLUMNS, [[formula, formula, formula, 0.5]])
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert not any(cell.startswith(STARTS) for row in reader for cell in row)
    assert text.splitlines()[0] == '"text","label","predicted","probability"'  # every cell in quotes


@given(st.lists(st.sampled_from(FORMULAS + PLAIN) | st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_the_lab_reads_every_text_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    rows = [[text, "yes", "no", 0.5] for text in ["first", *texts]]
    path = tmp_path_factory.getbasetemp() / "predictions.csv"
    path.write_text(csv_text(COLUMNS, rows), encoding="utf-8", newline="")
    table = read_table(path, ColumnRequest())
    assert [row.fields["text"] for row in table.rows] == [row[0] for row in rows]


def test_an_apostrophe_in_a_file_of_somebody_else_is_text(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("text,label\n'=1,yes\n'-x,no\n", encoding="utf-8")
    table = read_table(tmp_path / "mine.csv", ColumnRequest())
    assert [row.fields["text"] for row in table.rows] == ["'=1", "'-x"]
