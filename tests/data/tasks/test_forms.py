"""Files as people have them are read right with no option; where two readings fit, none is guessed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.base.errors import UserError
from attnlab.data.tasks.catalog import load_labelled
from attnlab.data.tasks.labelled import LabelledSet
from attnlab.data.tasks.tables import ColumnRequest

DATA = os.environ.get("ATTNLAB_DATA")
public = pytest.mark.skipif(
    DATA is None or not (Path(DATA) / "files").is_dir(), reason="ATTNLAB_DATA has no folder files"
)
CLASSES = ("bad", "fine", "good")
ROWS = [(f"No. {n} was, as they say, {'so; so' if n % 4 else 'well'} – café", CLASSES[n % 3]) for n in range(60)]


def pairs(data: LabelledSet) -> list[tuple[str, str]]:
    return sorted(
        (example.text, data.classes[example.label]) for examples in data.splits.values() for example in examples
    )


def write(path: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def as_csv(rows: list[tuple[str, ...]], separator: str, quote: str = '"', all_quoted: bool = False) -> str:
    file = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    csv.writer(file, delimiter=separator, quotechar=quote, quoting=quoting).writerows(rows)
    return file.getvalue()


FORMS = {
    "comma": ("a.csv", as_csv(ROWS, ",")),
    "comma in a txt": ("a.txt", as_csv(ROWS, ",")),
    "semicolon in a csv": ("a.csv", as_csv(ROWS, ";")),
    "single quotes": ("a.csv", as_csv(ROWS, ";", "'")),
    "all in quotes": ("a.csv", as_csv(ROWS, ",", all_quoted=True)),
    "all in quotes behind tabs": ("a.tsv", as_csv(ROWS, "\t", all_quoted=True)),
    "tab": ("a.tsv", "".join(f"{text}\t{label}\n" for text, label in ROWS)),
    "tab in a csv": ("a.csv", "".join(f"{label}\t{text}\n" for text, label in ROWS)),
    "tab without an ending": ("reviews", "".join(f"{label}\t{text}\r\n" for text, label in ROWS)),
    "bars": ("a.txt", "".join(f"{text}|||{label}\n" for text, label in ROWS)),
    "bar": ("a.txt", "".join(f"{label}|{text}\n" for text, label in ROWS)),
    "fastText": ("a.txt", "".join(f"__label__{label} {text}\n" for text, label in ROWS)),
    "first word": ("a.train", "".join(f"{label} {text}\n" for text, label in ROWS)),
    "index and blank name": (
        "a.csv",
        as_csv([("", "text", "y"), *((str(n), *row) for n, row in enumerate(ROWS))], ","),
    ),
    "list of lists": ("a.json", json.dumps([list(row) for row in ROWS])),
    "a list per column": ("a.json", json.dumps({"text": [r[0] for r in ROWS], "label": [r[1] for r in ROWS]})),
    "rows under a key": ("a.json", json.dumps({"data": [{"text": text, "label": label} for text, label in ROWS]})),
    "JSON lines in a txt": ("a.txt", "".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in ROWS)),
    "gzip": ("a.csv.gz", gzip.compress(as_csv(ROWS, ",").encode())),
    "fastText with a tab": ("a.txt", "".join(f"__label__{label}\t{text}\n" for text, label in ROWS)),
    "lines of an old Mac": ("a.tsv", "".join(f"{text}\t{label}\r" for text, label in ROWS)),
    "a list of lists with names": ("a.json", json.dumps([["text", "label"], *map(list, ROWS)])),
    "columns by index": (
        "a.json",
        json.dumps({name: {str(n): row[place] for n, row in enumerate(ROWS)} for place, name in enumerate(("t", "y"))}),
    ),
    "rows by index": ("a.json", json.dumps({str(n): {"text": t, "label": y} for n, (t, y) in enumerate(ROWS)})),
    "rows two keys deep": ("a.json", json.dumps({"set": {"rows": [{"text": t, "intent": y} for t, y in ROWS]}})),
    "ids, dates and users beside": (
        "a.csv",
        as_csv(
            [
                ("4", f"14678{n:05}", f"Mon Apr 06 22:{n:02}:45 PDT 2009", "NO_QUERY", f"user_name{n}", t, y)
                for n, (t, y) in enumerate(ROWS)
            ],
            ",",
        ),
    ),
    "a column of marks that is mostly empty": (
        "a.tsv",
        "".join(f"gj04\t{label}\t{'*' if label == 'bad' else ''}\t{text}\n" for text, label in ROWS),
    ),
    "a link beside the text": (
        "a.jsonl",
        "".join(
            json.dumps({"link": f"https://a.example/{n}", "line": t, "odd": y}) + "\n" for n, (t, y) in enumerate(ROWS)
        ),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(tmp_path: Path, form: str) -> None:
    name, content = FORMS[form]
    assert pairs(load_labelled(write(tmp_path / name, content))) == sorted(ROWS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_every_encoding_gives_the_same_rows(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "a.csv", as_csv(ROWS, ","), encoding)
    assert pairs(load_labelled(path)) == sorted(ROWS)
    assert pairs(load_labelled(path, ColumnRequest(encoding=encoding))) == sorted(ROWS)


def test_latin_1_and_a_line_of_another_encoding_are_read_and_reported(tmp_path: Path) -> None:
    lines = [f"{label}\tcafé {n}".encode("latin-1" if n == 7 else "utf-8") for n, (_, label) in enumerate(ROWS)]
    data = load_labelled(write(tmp_path / "a.tsv", b"\n".join(lines)))
    assert all(text.startswith("café") for text, _ in pairs(data))
    assert any("not UTF-8, read as Windows-1252: line 8 (--encoding decides)" in note for note in data.notes)


_WORD = st.text(
    st.characters(codec="utf-8", exclude_characters='\r\n\0",;|\t\x85\u2028', exclude_categories=("Cs", "Cc")),
    min_size=1,
)
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=("Cs",)), min_size=1).filter(
    str.strip
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_TEXT, min_size=12, max_size=30, unique=True))
def test_any_text_survives_a_csv(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    rows = [("text", "label"), *((text, CLASSES[n % 3]) for n, text in enumerate(texts))]
    path = write(tmp_path_factory.mktemp("any") / "a.csv", as_csv(rows, ",", all_quoted=True))
    assert pairs(load_labelled(path, hold_out=False)) == sorted(rows[1:])


def test_a_quote_behind_a_tab_is_a_character(tmp_path: Path) -> None:
    rows = [(f'"Well" number {n}' if n % 3 else f'"never closed {n}', CLASSES[n % 2]) for n in range(60)]
    path = write(tmp_path / "a.txt", "".join(f"{text}\t{label}\n" for text, label in rows))
    assert pairs(load_labelled(path)) == sorted(rows)


def test_two_texts_are_a_pair_where_their_names_differ_by_a_number(tmp_path: Path) -> None:
    head = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
    rows = [(str(n % 2), str(1000 + n), str(5000 + n), f"the first text {n}", f"a second text {n}") for n in range(40)]
    data = load_labelled(write(tmp_path / "a.txt", as_csv([head, *rows], "\t")))
    first = min(data.splits["train"], key=lambda example: int(example.text.split()[-1]))
    number = first.text.split()[-1]
    assert (first.text, first.pair) == (f"the first text {number}", f"a second text {number}")
    assert data.columns is not None and data.columns.label == "Quality"


def test_classes_in_words_are_preferred_to_their_numbers(tmp_path: Path) -> None:
    rows = [{"label": 100 + n % 3, "label_desc": CLASSES[n % 3], "sentence": f"text {n}"} for n in range(30)]
    data = load_labelled(write(tmp_path / "a.json", "".join(json.dumps(row) + "\n" for row in rows)))
    assert data.classes == CLASSES


def test_lists_of_splits_keep_their_splits(tmp_path: Path) -> None:
    content = {
        part: [[f"{part} {n}", CLASSES[n % 3]] for n in range(9)] for part in ("train", "val", "test", "oos_train")
    }
    data = load_labelled(write(tmp_path / "a.json", json.dumps(content, indent=1)))
    assert {split: len(examples) for split, examples in data.splits.items()} == {"train": 18, "dev": 9, "test": 9}
    assert {example.text.split()[0] for example in data.splits["train"]} == {"train", "oos_train"}


QUERIES = "".join(f"a query number {n},{'ab'[n % 2]}\n" for n in range(60))
TITLED = "".join(f"a headline {n},{'a much longer story ' * 3}{n},{'ab'[n % 2]}\n" for n in range(60))
AMBIGUOUS: dict[str, tuple[str, str | bytes, str, ColumnRequest]] = {
    "two separators": (
        "a.txt",
        "".join(f"x{n},y{n};{'ab'[n % 2]}\n" for n in range(60)),
        r"2 ways: separated by comma.*--separator comma .*; or separated by semicolon.*--separator semicolon",
        ColumnRequest(separator="semicolon"),
    ),
    "two labels": (
        "a.csv",
        "text,kind,tone\n" + "".join(f"a longer text {n},{'ab'[n % 2]},{'cde'[n % 3]}\n" for n in range(60)),
        r"the label may be any of 2: give --label 'kind' or --label 'tone'",
        ColumnRequest(label="tone"),
    ),
    "two usual names of a label": (
        "a.csv",
        "text,label,sentiment\n" + "".join(f"a longer text {n},{n % 4},{'cde'[n % 3]}\n" for n in range(60)),
        r"the label may be any of 2: give --label 'label' or --label 'sentiment'",
        ColumnRequest(label="label"),
    ),
    "two texts": (
        "a.csv",
        "headline,story,label\n" + "".join(f"a headline {n},a longer story {n},{'ab'[n % 2]}\n" for n in range(60)),
        r"the text may be any of 3: give --text 'headline' or --text 'story' or --text 'headline' --pair 'story'",
        ColumnRequest(text="story"),
    ),
    "a title beside a text": (
        "a.csv",
        "Title,Description,label\n" + TITLED,
        r"the text may be any of 3: give --text 'Title' or --text 'Description' or --text 'Title' --pair 'Description'",
        ColumnRequest(text="Title", pair="Description"),
    ),
    "a title beside a text, without names": ("a.csv", TITLED, r"give --text '1' or --text '2' or", ColumnRequest("2")),
    "an unusual header": (
        "a.csv",
        "utterance,intent\n" + QUERIES,
        r"line 1 is a header or an example: its label 'intent' occurs nowhere else; give --header or --no-header",
        ColumnRequest(header=True),
    ),
    "an unusual header of few rows": (
        "a.csv",
        "utterance,intent\n" + "".join(QUERIES.splitlines(keepends=True)[:8]),
        r"a header or an example",
        ColumnRequest(header=True),
    ),
    "an unusual header in JSON": (
        "a.json",
        json.dumps([["utterance", "intent"], *(line.split(",") for line in QUERIES.splitlines())]),
        r"row 1 is a header or an example",
        ColumnRequest(header=True),
    ),
    "a usual name above its own class": (
        "a.csv",
        "question,a\n" + QUERIES,
        r"'question' is a usual name of a column, but 'a' also occurs below; give --header or --no-header",
        ColumnRequest(header=True),
    ),
    "Russian in one byte": (
        "a.tsv",
        "".join(f"фильм очень хороший {n}\t{n % 2}\n" for n in range(60)).encode("cp1251"),
        r"line 1 is not UTF-8; it may begin with 'ôè.*' with --encoding cp1252, or 'фильм .*' with --encoding cp1251",
        ColumnRequest(encoding="cp1251"),
    ),
    "Chinese in two bytes": (
        "a.tsv",
        "".join(f"电影很好看非常喜欢{n}\t{n % 2}\n" for n in range(60)).encode("gb18030"),
        r"with --encoding cp1252, .*'电影很好看.*' with --encoding gb18030",
        ColumnRequest(encoding="gb18030"),
    ),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_asked_about(tmp_path: Path, case: str) -> None:
    name, content, question, answer = AMBIGUOUS[case]
    path = write(tmp_path / name, content)
    with pytest.raises(UserError, match=question):
        load_labelled(path)
    assert len(pairs(load_labelled(path, answer))) == (8 if "few" in case else 60)


def test_unnamed_texts_of_about_one_length_side_by_side_are_a_pair(tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = [(f"the first text {n}", f"a second text {n}", "ab"[n % 2]) for n in range(40)]
    data = load_labelled(write(tmp_path / "a.tsv", as_csv(rows, "\t")))
    assert data.paired
    assert data.columns == ("1", "3", "2")


def test_a_text_with_several_fasttext_labels_is_no_row(tmp_path: Path) -> None:
    lines = [f"__label__a {'__label__b ' * (n % 10 == 4)}text {n}\n" for n in range(30)]
    lines += [f"__label__b text {n}\n" for n in range(30, 60)]
    path = write(tmp_path / "a.txt", "".join(lines))
    with pytest.raises(UserError, match=r"line 5 has 2 labels, expected one: .*; 3 of 60 rows cannot be used"):
        load_labelled(path)
    assert len(pairs(load_labelled(path, ColumnRequest(skip_bad_rows=True)))) == 57


def test_prose_is_not_taken_for_labels(tmp_path: Path) -> None:
    words = ["The cat sat", "I saw it there", "We went on and on", "Nobody knew why", "It was late", "You know."]
    text = "".join(f"{words[n % 6]} {n}\n" if n % 2 else f"{n}th of them it is\n" for n in range(60))
    with pytest.raises(UserError, match="one column, expected at least two"):
        load_labelled(write(tmp_path / "a.txt", text))


BAD = "text\tlabel\n" + "".join(f"text {n}\t{n % 2}\n" for n in range(30)) + " \t1\nlast\t\none\n"


def test_a_device_that_never_ends_is_refused() -> None:
    with pytest.raises(UserError, match="is a device"):
        load_labelled("/dev/zero")


def test_all_bad_rows_are_named_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", BAD)
    with pytest.raises(
        UserError, match=r"line 34 has 1 fields.*; 3 of 33 rows cannot be used, also line 32, line 33:.*"
    ):
        load_labelled(path)


def test_bad_rows_are_left_out_on_request_and_listed(tmp_path: Path) -> None:
    data = load_labelled(write(tmp_path / "a.tsv", BAD), ColumnRequest(skip_bad_rows=True))
    assert len(pairs(data)) == 30
    assert [row.where.rpartition(" ")[2] for row in data.skipped] == ["34", "32", "33"]
    assert any("3 of 33 rows left out" in note for note in data.notes)


def test_a_row_in_two_hundred_without_its_fields_is_left_out_and_reported(tmp_path: Path) -> None:
    rows = [f"text {n}\t{n % 2}" for n in range(400)]
    rows[16] = "text 16    0"
    data = load_labelled(write(tmp_path / "a.tsv", "\n".join(rows)))
    assert len(pairs(data)) == 399
    assert any("1 of 400 rows left out as unusable: line 17" in note for note in data.notes)


PUBLIC = {
    "10kGNAD_test.csv": (1028, 9, "Etat"),
    "SMSSpamCollection": (5574, 2, "spam"),
    "TREC.train": (5452, 50, "DESC:manner"),
    "banking77_train.csv": (10003, 77, "card_arrival"),
    "clinc_data_small.json": (16200, 151, "oos"),
    "imdb_labelled.txt": (999, 2, "0"),
    "msr_paraphrase_train.txt": (4080, 2, "1"),
    "tncc_title_fasttext_test.txt": (928, 12, "Politics"),
    "tnews_train_few_all.json": (1185, 15, "news_story"),
}


@public
@pytest.mark.parametrize("name", PUBLIC)
def test_public_files_are_read_with_no_option(name: str) -> None:
    assert DATA is not None
    rows, classes, one = PUBLIC[name]
    data = load_labelled(Path(DATA) / "files" / name)
    assert (len(pairs(data)), len(data.classes)) == (rows, classes)
    assert one in data.classes
    assert data.paired == (name == "msr_paraphrase_train.txt")
