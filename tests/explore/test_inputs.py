"""Explorations take lists, arrays, tensors and files, and show themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnlab import explore
from attnlab.base.errors import UserError

KEYS, VALUES = [[1, 0], [0, 1], [-1, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    "convert",
    [
        list,
        np.array,
        lambda rows: np.array(rows, dtype=np.float32),
        torch.tensor,
        lambda rows: torch.tensor(rows, dtype=torch.bfloat16),
        lambda rows: torch.tensor(rows, dtype=torch.float64, requires_grad=True),
    ],
)
def test_the_same_numbers_give_the_same_result(convert: Any) -> None:
    keys, values = convert(KEYS), convert(VALUES)
    expected = np.array(KEYS, dtype=float), np.array(VALUES)
    assert explore.select(keys, values, 1).outputs == pytest.approx(explore.select(*expected, 1).outputs)
    assert explore.attend(convert([1, 0]), keys, values) == pytest.approx(explore.attend([1, 0], *expected))
    assert explore.try_query(convert([1, 0]), keys, values, target=convert([1, 2])).weights.sum() == pytest.approx(1)
    assert explore.softmax(convert(KEYS)).shape == (3, 2) and len(explore.reach(keys).sets) == 7


def test_a_file_is_taken_where_numbers_are(tmp_path: Path) -> None:
    np.save(tmp_path / "keys.npy", np.array(KEYS))
    assert explore.select(tmp_path / "keys.npy", "1 2; 3 4; 5 6", 2).error < 1e-9


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ([[1, 0], [0]], "keys: expected numbers, in rows of the same length"),
        ([["a", "b"]], "keys: expected numbers"),
        ([[[1.0]]], "expected rows and columns, got an array with 3 axes"),
        ([[np.nan, 0.0]], "row 0, column 0"),
        ([], "no numbers found"),
    ],
)
def test_what_is_no_matrix_is_one_sentence(keys: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        explore.select(keys, [[1.0]], 0)


def test_a_result_shows_itself_without_anything_from_elsewhere() -> None:
    page = explore.select(KEYS, VALUES, 0)._repr_html_()
    assert page.count("<table>") == 2 and "data:image/png;base64," in page and "http" not in page
