"""Rows that are read one after the other are those of reading the whole file, in every form and encoding."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.data.tasks import row_stream
from attnlab.data.tasks.read_table import read_table
from attnlab.data.tasks.row_stream import stream_rows
from attnlab.data.tasks.tables import ColumnRequest

ROWS = [(f'No. {n}; "so", as\nthey say – café', ("bad", "fine", "good")[n % 3]) for n in range(400)]
LINES = [(" ".join(text.split()), label) for text, label in ROWS]


def as_csv(separator: str = ",") -> str:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator).writerows([("text", "label"), *ROWS])
    return file.getvalue()


FORMS = {
    "comma.csv": as_csv().encode(),
    "semicolon.csv": as_csv(";").encode(),
    "marked.csv": as_csv().encode("utf-8-sig"),
    "wide.csv": as_csv().encode("utf-16"),
    "western.csv": as_csv().encode("cp1252"),
    "packed.csv.gz": gzip.compress(as_csv().encode()),
    "tab.tsv": "".join(f"{label}\t{text}\r\n" for text, label in LINES).encode(),
    "word": "".join(f"{label} {text}\n" for text, label in LINES).encode(),
    "fast.txt": "".join(f"__label__{label} {text}\n" for text, label in LINES).encode(),
    "bars.txt": "".join(f"{text}|||{label}\n" for text, label in LINES).encode(),
    "rows.jsonl": "".join(json.dumps({"text": t, "label": y}) + "\n" for t, y in ROWS).encode(),
    "list.json": json.dumps([{"text": t, "label": y} for t, y in ROWS]).encode(),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_rows_are_those_of_the_whole_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(FORMS[name])
    whole = read_table(tmp_path / name, ColumnRequest())
    monkeypatch.setattr(row_stream, "SAMPLE", 3000)  # the file does not fit into the beginning
    stream = stream_rows(tmp_path / name, ColumnRequest())
    assert stream.head.columns == whole.columns and stream.head.named == whole.named
    for _ in range(2):
        assert list(stream.rows()) == whole.rows and len(whole.rows) == 400


def test_parquet_is_read_in_parts(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    content = {"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]}
    parquet.write_table(pyarrow.table(content), tmp_path / "a.parquet")
    stream = stream_rows(tmp_path / "a.parquet", ColumnRequest())
    assert list(stream.rows()) == read_table(tmp_path / "a.parquet", ColumnRequest()).rows


def test_a_row_that_is_none_is_named_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"text {n}\t{n % 2}\n" for n in range(400)) + "alone\n")
    monkeypatch.setattr(row_stream, "SAMPLE", 1000)
    with pytest.raises(UserError, match=r"line 401 has 1 fields, expected 2 as in line 1"):
        list(stream_rows(tmp_path / "a.tsv", ColumnRequest()).rows())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    import tracemalloc

    with (tmp_path / "a.tsv").open("w") as file:
        file.writelines(f"{'a long text of many words ' * 20}{n}\t{n % 2}\n" for n in range(40_000))
    size = (tmp_path / "a.tsv").stat().st_size
    stream = stream_rows(tmp_path / "a.tsv", ColumnRequest())
    tracemalloc.start()
    count = sum(1 for _ in stream.rows())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 40_000 and peak < size / 20
