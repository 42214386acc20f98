"""Predictions as lines of JSON: every text reads back, and a broken file is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.runs.predictions import PredictedExample, read_examples, read_predictions, write_predictions


@pytest.mark.parametrize("odd", ["a\u2028b", "a\u0085b", "a\rb", "a\x1c\x0bb", "a\nb", "\ud800", "[/] $x$ \x1b[31m"])
def test_a_text_with_any_separator_is_one_example(odd: str, tmp_path: Path) -> None:
    examples = [PredictedExample(odd, odd, "no", 0.5, 0.25, odd), PredictedExample("b", "yes", "yes", 1.0)]
    write_predictions(tmp_path, "test", examples)
    read = read_examples(tmp_path, "test")
    assert read is not None and [example.text for example in read] == [odd, "b"]
    assert read[0] == examples[0]
    predictions = read_predictions(tmp_path)
    assert predictions is not None and predictions.right.tolist() == [False, True]


@pytest.mark.parametrize("line", [b"\xff", b"[1]", b'{"text": "a"}', b"{", b"[" * 100_000, b"1" * 5000])
def test_a_broken_line_is_named(line: bytes, tmp_path: Path) -> None:
    write_predictions(tmp_path, "test", [PredictedExample("a", "yes", "no", 0.5)])
    with (tmp_path / "predictions-test.jsonl").open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(UserError, match=r"predictions-test\.jsonl, line 2: expected a prediction"):
        read_examples(tmp_path, "test")
