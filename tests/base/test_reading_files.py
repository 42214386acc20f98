"""Files that are no texts, or no JSON, end in one sentence; odd texts are written so that they read back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from attnlab.base.errors import UserError, shown
from attnlab.base.files import read_json, read_text, write_text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "thousands of digits"),
        ('{"a": 1', "line 1 is not JSON"),
        ("[1]", "expected a JSON object"),
        ("", "is empty"),
    ],
)
def test_json_that_nobody_means_is_one_sentence(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(UserError, match=sentence):
        read_json(tmp_path / "a.json")


def test_what_is_no_file_of_text_is_one_sentence(tmp_path: Path) -> None:
    for path, sentence in (
        (tmp_path, "is a folder"),
        (Path("/dev/zero"), "is a device"),
        (tmp_path / "none", "does not exist"),
        (Path("a\0b"), "null character"),
    ):
        with pytest.raises(UserError, match=sentence):
            read_text(path)


def test_a_pipe_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, "größer\n".encode())
    os.close(writing)
    try:
        assert read_text(Path(f"/dev/fd/{reading}")) == "größer\n"
    finally:
        os.close(reading)


def test_half_of_a_surrogate_pair_reads_back_from_json(tmp_path: Path) -> None:
    write_text(tmp_path / "a.json", json.dumps({"text": "\ud800 \u2028"}, ensure_ascii=False))
    assert read_json(tmp_path / "a.json") == {"text": "\ud800 \u2028"}


def test_a_value_in_a_sentence_is_short() -> None:
    assert shown("x") == "'x'"
    assert len(shown(["x" * 1000])) == 200 and shown(["x" * 1000]).endswith("…")
    assert shown(10**5000) == "a number of thousands of digits"
