"""Keys and values from files and from typed numbers; every error is one sentence with its location."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from attnlab.base.errors import UserError
from attnlab.explore import read_matrix, read_rows, read_vector
from attnlab.explore.exploration import rows_of

MATRIX = [[1.0, -0.5], [2e-3, 4.0]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", "1,-0.5\n2e-3, 4\n"),
        ("m.tsv", "1\t-0.5\n2e-3\t4\n"),
        ("m.txt", "1 -0.5\n\n2e-3   4\n"),
        ("m.json", json.dumps(MATRIX)),
    ],
)
def test_every_format_gives_the_same_matrix(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_matrix(str(path), "K").tolist() == MATRIX


def test_numpy_files_are_read_without_pickle(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.array(MATRIX))
    assert read_matrix(str(tmp_path / "m.npy"), "K").tolist() == MATRIX
    np.save(tmp_path / "bad.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="plain array of numbers"):
        read_matrix(str(tmp_path / "bad.npy"), "K")


@pytest.mark.parametrize("typed", ["1 -0.5; 2e-3 4", "1,-0.5;0.002,4", "[1, -0.5]; [2e-3, 4]"])
def test_typed_rows(typed: str) -> None:
    assert read_matrix(typed, "K").tolist() == MATRIX


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.csv", "1,2\n3,x\n", r"m\.csv, line 2: 'x' is not a number"),
        ("m.csv", "a,b\n1,2\n", r"m\.csv, line 1: 'a' is not a number"),
        ("m.csv", "1,2\n\n3,nan\n", r"m\.csv, line 3: nan cannot be used"),
        ("m.csv", "1,2\n3,inf\n", r"m\.csv, line 2: inf cannot be used"),
        ("m.csv", "1,2\n3\n", r"m\.csv, line 2: expected 2 numbers as in the rows before, got 1"),
        ("m.csv", "1,,2\n", r"m\.csv, line 1: '' is not a number"),
        ("m.csv", "", r"m\.csv is empty"),
        ("m.json", "[[1, 2]\n[3]]", r"m\.json, line 2: not valid JSON"),
        ("m.json", '{"a": 1}', "must be a list of rows"),
        ("m.json", "[[1, NaN]]", "NaN cannot be used"),
        ("m.json", "[[1, null]]", "'null' is not a number"),
        ("m.npy", "not numpy", "plain array of numbers"),
    ],
)
def test_the_error_about_a_bad_file_names_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        read_matrix(str(path), "--keys")
    assert "\n" not in str(caught.value)


def test_a_nan_in_a_numpy_file_is_found(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.array([[1.0, 2.0], [np.nan, 4.0]]))
    with pytest.raises(UserError, match="row 1, column 0"):
        read_matrix(str(tmp_path / "m.npy"), "--keys")


def test_what_is_neither_a_file_nor_numbers() -> None:
    with pytest.raises(UserError, match=r"the file 'keys\.csv' does not exist"):
        read_matrix("keys.csv", "--keys")


def test_vectors_and_rows() -> None:
    assert read_vector("1 2 3", "q").tolist() == [1, 2, 3]
    assert read_vector("1; 2; 3", "q").tolist() == [1, 2, 3]
    with pytest.raises(UserError, match="must be one vector"):
        read_vector("1 2; 3 4", "q")
    assert read_rows("2, 0,2", 3, "row") == (0, 2)
    with pytest.raises(UserError, match="not a list of whole numbers"):
        read_rows("0;1", 3, "row")
    with pytest.raises(UserError, match="out of range"):
        read_rows("0,3", 3, "row")


def test_typed_numbers_may_be_longer_than_a_file_name() -> None:
    assert read_matrix("1 " * 300 + "; " + "2 " * 300, "K").shape == (2, 300)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "--query is empty"),
        ("1 0 x", "'x' is not a number"),
        ("inf 0", "inf cannot be used"),
        ("x y", r"the file 'x y' does not exist; give a file or type numbers like"),
        (".", "is a folder"),
    ],
)
def test_what_is_typed_for_a_vector(given: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_vector(given, "--query")


def test_rows_are_aligned_rounded_and_shortened() -> None:
    assert rows_of(np.array([[1.0, -0.25], [1e-17, 10.0]])) == ["   1.0000 -0.2500", "   0.0000 10.0000"]
    assert rows_of(np.array([[1e-5, 2e6]])) == ["  1.000e-05 2.000e+06"]
    large = rows_of(np.arange(100.0).reshape(10, 10))
    assert len(large) == 7
    assert large[4].strip() == "…"
    assert large[0].split() == ["0.0000", "1.0000", "2.0000", "3.0000", "…", "8.0000", "9.0000"]
    assert large[-1].split()[-1] == "99.0000"
