"""A user's own files: columns and classes found or given, and every fault told in one sentence."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.data.tasks.catalog import load_labelled
from attnlab.data.tasks.columns import Columns
from attnlab.data.tasks.labelled import LabelledSet, LabelledText
from attnlab.data.tasks.tables import ColumnRequest

ROWS = [(f'text, number {n}\nof "many"', ("bad", "good", "fine")[n % 3]) for n in range(60)]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def everything(data: LabelledSet) -> set[LabelledText]:
    return {example for examples in data.splits.values() for example in examples}


def test_a_csv_gives_back_what_was_written(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("review", "stars"), *ROWS])
    data = load_labelled(tmp_path / "a.csv")
    assert data.classes == ("bad", "fine", "good")
    assert everything(data) == {LabelledText(text, data.classes.index(label)) for text, label in ROWS}


@pytest.mark.parametrize("flipped", [False, True])
def test_without_a_header_the_label_is_the_column_with_fewer_values(tmp_path: Path, flipped: bool) -> None:
    lines = [f"{n % 5 + 1}\treview {n}" if flipped else f"review {n}\t{n % 5 + 1}" for n in range(50)]
    data = load_labelled(write(tmp_path / "a.tsv", "\n".join(lines)))
    assert data.classes == ("1", "2", "3", "4", "5")
    assert everything(data) == {LabelledText(f"review {n}", n % 5) for n in range(50)}


def test_a_header_of_unknown_names_is_not_taken_for_data_in_silence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "Bemerkung\tKlasse\n" + "".join(f"t{n}\t{'ab'[n % 2]}\n" for n in range(40)))
    with pytest.raises(
        UserError, match=r"line 1 is a header or an example: its label 'Klasse' .*--header or --no-header"
    ):
        load_labelled(path)
    assert load_labelled(path, ColumnRequest(header=True)).classes == ("a", "b")
    assert load_labelled(path, ColumnRequest(header=False)).classes == ("Klasse", "a", "b")
    assert load_labelled(path, ColumnRequest(label="Klasse")).classes == ("a", "b")


def test_a_word_above_numbers_is_a_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "Bemerkung\tKlasse\n" + "".join(f"t{n}\t{n % 2}\n" for n in range(40)))
    assert load_labelled(path).classes == ("0", "1")


def test_numbers_sort_as_numbers_and_true_comes_after_false(tmp_path: Path) -> None:
    numbers = "".join(json.dumps({"text": f"t{n}", "label": n % 11}) + "\n" for n in range(110))
    assert load_labelled(write(tmp_path / "n.jsonl", numbers)).classes == tuple(map(str, range(11)))
    answers = "".join(
        json.dumps({"question": f"q{n}", "title": "x", "answer": n % 2 == 0, "passage": f"p{n}"}) + "\n"
        for n in range(40)
    )
    data = load_labelled(write(tmp_path / "b.jsonl", answers))
    assert data.classes == ("false", "true")
    assert everything(data) == {LabelledText(f"q{n}", int(n % 2 == 0), f"p{n}") for n in range(40)}


@pytest.mark.parametrize(("labels", "names"), [("01", "no,yes"), ("12", "no,yes"), ("ba", "b,a"), ("123", "x,y,z")])
def test_given_names_of_classes_go_by_name_or_by_counting(tmp_path: Path, labels: str, names: str) -> None:
    lines = ["text\tlabel", *(f"t{n}\t{labels[n % len(labels)]}" for n in range(60))]
    data = load_labelled(write(tmp_path / "a.tsv", "\n".join(lines)), ColumnRequest(classes=tuple(names.split(","))))
    assert everything(data) == {LabelledText(f"t{n}", n % len(labels)) for n in range(60)}


def test_a_column_of_splits_is_followed(tmp_path: Path) -> None:
    lines = ["text\tlabel\tsplit", *(f"t{n}\t{n % 2}\t{('train', 'valid', 'test')[n % 3]}" for n in range(30))]
    data = load_labelled(write(tmp_path / "a.tsv", "\n".join(lines)))
    for place, split in enumerate(("train", "dev", "test")):
        assert [example.text for example in data.splits[split]] == [f"t{n}" for n in range(30) if n % 3 == place]


def test_a_folder_is_its_files_and_only_what_is_missing_is_made(tmp_path: Path) -> None:
    for name, count in (("train", 100), ("validation", 10)):
        write(tmp_path / f"{name}.tsv", "text\tlabel\n" + "".join(f"{name} {n}\t{n % 2}\n" for n in range(count)))
    data = load_labelled(tmp_path)
    assert {split: len(examples) for split, examples in data.splits.items()} == {"train": 90, "dev": 10, "test": 10}
    assert all(example.text.startswith("train") for example in data.splits["test"])
    assert any("test (10) taken from the 100 training rows" in note for note in data.notes)
    assert data.facts()["files"]["train"]["sha256"]


def test_parquet_is_read_like_the_others(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"sentence": [text for text, _ in ROWS], "label": [n % 3 for n in range(60)]})
    parquet.write_table(table, tmp_path / "a.parquet")
    data = load_labelled(tmp_path / "a.parquet")
    assert everything(data) == {LabelledText(text, n % 3) for n, (text, _) in enumerate(ROWS)}
    with pytest.raises(UserError, match="cannot be read as Parquet"):
        load_labelled(write(tmp_path / "b.parquet", "text"))


def test_parquet_without_its_package_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="pip install pyarrow"):
        load_labelled(write(tmp_path / "a.parquet", b"PAR1"))


GOOD = "text\tlabel\nfirst\t0\nsecond\t1\n"


def test_empty_texts_are_taken_where_they_are_allowed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", GOOD + "".join(f"{n}\t{n % 2}\n" for n in range(8)) + "\t1\n")
    data = load_labelled(file, ColumnRequest(allow_empty=True), hold_out=False)
    assert sorted(example.text for part in data.splits.values() for example in part)[0] == ""
    with pytest.raises(UserError, match="the text in 'text' is empty"):
        load_labelled(file, hold_out=False)


FAULTS = {
    "empty text": ("a.tsv", GOOD + " \t1\n", ColumnRequest(), r"a\.tsv, line 4: the text in 'text' is empty"),
    "empty label": ("a.tsv", GOOD + "third\t\n", ColumnRequest(), r"a\.tsv, line 4: the label is empty"),
    "label outside": (
        "a.tsv",
        GOOD + "third\t2\n",
        ColumnRequest(classes=("no", "yes")),
        r"line 4: the label '2' is not am",
    ),
    "unclear counting": ("a.tsv", GOOD.replace("0", "2"), ColumnRequest(classes=tuple("abcd")), "from 0 or from 1"),
    "no such column": ("a.tsv", GOOD, ColumnRequest(text="body"), r"no column 'body': its columns are text, label"),
    "columns unclear": (
        "a.csv",
        "a,b,label\n1,2,3\n",
        ColumnRequest(),
        r"no column is clearly the text among a, b, label",
    ),
    "fields": (
        "a.csv",
        "text,label\na,0\nb,c,1\n",
        ColumnRequest(),
        r"a\.csv, line 3 has 3 fields, expected 2 as in line 1",
    ),
    "fields after a newline": ("a.csv", 'text,label\n"a\nb",0\nb,c,1\n', ColumnRequest(), r"line 4 has 3 fields"),
    "open quote": ("a.csv", 'text,label\na,0\n"b,1\n', ColumnRequest(), r"a\.csv, line 3 is not a row of a CSV"),
    "one column": ("a.csv", "text:label\na:0\n", ColumnRequest(), "has one column, expected at least two"),
    "broken JSON": ("a.jsonl", '{"text": "a", "label": 0}\n{"text": \n', ColumnRequest(), r"line 2 is broken JSON"),
    "no object": ("a.jsonl", '{"text": "a", "label": 0}\n[1]\n', ColumnRequest(), r"line 2 is not a JSON object"),
    "no objects": ("a.jsonl", "[1]\n", ColumnRequest(), "is not a list of objects"),
    "broken list": ("a.json", '[{"text": "a",\n "label": 0},\n', ColumnRequest(), r"a\.json, line 3 is broken JSON"),
    "list of words": ("a.json", '["a"]', ColumnRequest(), r"a\.json is not a list of objects"),
    "null in a list": (
        "a.json",
        '[{"text": "a", "label": 0},\n{"text": "", "label": 1}]',
        ColumnRequest(),
        "row 2: the t",
    ),
    "key missing": (
        "a.jsonl",
        '{"text": "a", "label": 0}\n{"text": "b"}\n',
        ColumnRequest(),
        "line 2 has no column 'label",
    ),
    "null text": (
        "a.jsonl",
        '{"text": null, "label": 0}\n{"text": "b", "label": 1}\n',
        ColumnRequest(),
        "line 1: the text",
    ),
    "half label": ("a.jsonl", '{"text": "a", "label": 0.5}\n', ColumnRequest(), "line 1: 0.5 is not a label"),
    "surrogate": (
        "a.jsonl",
        '{"text": "\\ud800", "label": 0}\n{"text": "b", "label": 1}\n',
        ColumnRequest(),
        "surrogate",
    ),
    "empty": ("a.csv", "", ColumnRequest(), r"a\.csv is empty"),
    "header only": ("a.csv", "text,label\n", ColumnRequest(), "no rows below its header"),
    "twice": ("a.csv", "text,text,label\na,b,0\n", ColumnRequest(), "names a column twice"),
    "binary": ("a.csv", b"text,label\n\x00\x01,0\n", ColumnRequest(), r"a\.csv is a binary file"),
    "not in the encoding": (
        "a.csv",
        "text,label\ncafé,0\n".encode("latin-1"),
        ColumnRequest(encoding="utf-8"),
        r"a\.csv, line 2 is not utf-8",
    ),
    "no encoding": ("a.csv", GOOD, ColumnRequest(encoding="utf-99"), "--encoding utf-99 is not known"),
    "no separator": ("a.csv", GOOD, ColumnRequest(separator=","), "--separator , is not known: choose comma"),
    "one class": ("a.tsv", "text\tlabel\na\t1\nb\t1\n", ColumnRequest(), "all rows have the label '1'"),
    "too many classes": ("a.tsv", "text\tlabel\na\t1\nb\t2\nc\t3\n", ColumnRequest(), "3 different labels in 3 rows"),
    "too few": ("a.tsv", GOOD, ColumnRequest(), "too few rows to take dev and test from"),
    "ending": ("a.xlsx", GOOD, ColumnRequest(), r"a\.xlsx is a spreadsheet: save its rows as CSV"),
    "unknown split": (
        "a.tsv",
        "text\tlabel\tsplit\na\t0\tx\n",
        ColumnRequest(),
        "line 2: expected train, dev or test in 'split', got 'x'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_sentence_with_file_and_line(tmp_path: Path, fault: str) -> None:
    name, content, request, expected = FAULTS[fault]
    with pytest.raises(UserError, match=expected) as raised:
        load_labelled(write(tmp_path / name, content), request)
    assert "\n" not in str(raised.value)


def test_a_label_that_training_never_saw_is_refused_in_dev(tmp_path: Path) -> None:
    train = write(tmp_path / "t.tsv", "text\tlabel\n" + "".join(f"t{n}\t{n % 2}\n" for n in range(40)))
    dev = write(tmp_path / "d.tsv", "text\tlabel\na\t0\nb\t7\n")
    with pytest.raises(UserError, match=r"d\.tsv, line 3: the label '7' is not among 0, 1"):
        load_labelled(train, dev=dev)


def test_what_is_neither_task_nor_file_gets_the_nearest_task() -> None:
    with pytest.raises(UserError, match="did you mean 'boolq'"):
        load_labelled("bolq")
    with pytest.raises(UserError, match="its own files and columns"):
        load_labelled("sentiment", ColumnRequest(text="text"))


@pytest.mark.parametrize(
    "values", [["text"], {"text": "a"}, {"text": {"x": 1}, "label": "b", "pair": None}, {"text": "a", "label": 1}]
)
def test_stored_columns_of_another_shape_are_refused(values: object) -> None:
    with pytest.raises(ValueError, match="column"):
        Columns.stored(values)
    columns = Columns("a", "b", None)
    assert Columns.stored(columns._asdict()) == columns and Columns.stored(None) is None
