"""Planted wrong labels are among the likely ones, in the summary of a file and in the report of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.cli import app
from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.evaluation.label_errors import FEWEST, find_suspects
from attnlab.jobs.classify.suspects import FILE, passage, write_suspects

WORDS = (("dull", "grim", "awful", "boring"), ("bright", "lovely", "warm", "clever"))
WRONG = (5, 18, 41)


def example(n: int) -> LabelledText:
    """Film n in two words of its class; a few have the other label."""
    words = WORDS[n % 2]
    return LabelledText(f"film {n} is {words[n % 4]} and {words[(n // 4) % 4]}", (n + (n in WRONG)) % 2)


def data(count: int = 120, paired: bool = False) -> LabelledSet:
    rows = [example(n) for n in range(count)]
    if paired:
        rows = [LabelledText(f"is film {n} good?", row.label, row.text) for n, row in enumerate(rows)]
    return LabelledSet("films", ("bad", "good"), {"train": rows})


@pytest.mark.parametrize("paired", [False, True])
def test_planted_errors_are_found_and_no_others(paired: bool) -> None:
    suspects = find_suspects(data(paired=paired))
    assert suspects is not None
    assert {row["pair" if paired else "text"] for row in suspects.rows()} == {example(n).text for n in WRONG}
    assert all(row["likely"] != row["label"] and row["probability"] > 0.5 for row in suspects.rows())
    assert suspects.sentence() == "3 labels of the 120 training rows looked at may be wrong."


def test_few_rows_and_one_text_say_nothing() -> None:
    assert find_suspects(data(FEWEST - 1)) is None
    same = [LabelledText("the same", n % 2) for n in range(100)]
    assert find_suspects(LabelledSet("same", ("bad", "good"), {"train": same})) is None


def test_texts_without_words_are_no_error() -> None:
    marks = [LabelledText("?!" * (1 + n), n % 2) for n in range(100)]
    assert find_suspects(LabelledSet("marks", ("bad", "good"), {"train": marks})) is not None


def test_the_page_shows_them(tmp_path: Path) -> None:
    assert passage(tmp_path) is None
    write_suspects(tmp_path, data())
    assert len((tmp_path / FILE).read_text().splitlines()) == 3
    shown = passage(tmp_path)
    assert shown is not None and shown.paragraphs[0].startswith("3 training rows have a label that may be wrong. TF")
    assert {row[0] for row in shown.tables[0].rows} == {example(n).text for n in WRONG}


def test_a_file_is_shown_with_them(tmp_path: Path) -> None:
    rows = [f"{each.text}\t{['bad', 'good'][each.label]}\n" for each in map(example, range(120))]
    (tmp_path / "films.tsv").write_text("".join(rows))
    done = CliRunner().invoke(app, ["data", "show", str(tmp_path / "films.tsv")])
    assert done.exit_code == 0 and "training rows looked at may be wrong" in done.stdout
    assert ", likely " in done.stdout
    plain = CliRunner().invoke(app, ["data", "show", str(tmp_path / "films.tsv"), "--json", "--no-label-errors"])
    assert "label_errors" not in json.loads(plain.stdout)
