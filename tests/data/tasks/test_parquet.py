"""Parquet files: what is in them is read, and what would fill the memory is refused before it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.data.tasks.read_table import read_table
from attnlab.data.tasks.tables import ColumnRequest

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_rows_of_all_kinds_are_read(tmp_path: Path) -> None:
    rows = {"text": ["é", "b", None], "label": [1, 2, 3], "share": [0.5, 1.0, None], "tokens": [["a"], ["b"], []]}
    table = pyarrow.table(rows).append_column("kind", pyarrow.array(["x", "y", "x"]).dictionary_encode())
    parquet.write_table(table, tmp_path / "rows.parquet")
    read = read_table(tmp_path / "rows.parquet", ColumnRequest())
    assert read.columns == ["text", "label", "share", "kind"]  # a list is neither a text nor a label
    assert [row.fields for row in read.rows][:2] == [
        {"text": "é", "label": 1, "share": 0.5, "kind": "x"},
        {"text": "b", "label": 2, "share": 1.0, "kind": "y"},
    ]


def test_a_small_file_of_many_gigabytes_is_refused(tmp_path: Path) -> None:
    one = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 9000, pyarrow.int32()), ["x" * 1_000_000])
    table = pyarrow.table({"text": one, "label": ["a", "b"] * 4500})
    parquet.write_table(table, tmp_path / "large.parquet", compression="gzip", store_schema=False)
    assert (tmp_path / "large.parquet").stat().st_size < 10_000
    with pytest.raises(UserError, match=r"unpacks to about 8\.4 GiB, more than the 2 GiB .* write it as \.jsonl"):
        read_table(tmp_path / "large.parquet", ColumnRequest())


def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": [1, 2]}), tmp_path / "rows.parquet")
    content = (tmp_path / "rows.parquet").read_bytes()
    for n, broken in enumerate((content[:-20], content[20:], b"", b"PAR1PAR1", content.replace(b"text", b"t\xffxt"))):
        (tmp_path / f"{n}.parquet").write_bytes(broken)
        with pytest.raises(UserError):
            read_table(tmp_path / f"{n}.parquet", ColumnRequest())
