"""Two runs are tested on the same examples, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.runs.paired import pair_runs, paired_test
from attnlab.runs.predictions import Prediction, read_predictions


def said(folder: Path, right: str, texts: str = "abcdefghij") -> Path:
    """A run that was right where there is a 1."""
    folder.mkdir()
    lines = [
        json.dumps({"text": text, "label": "yes", "predicted": "yes" if mark == "1" else "no"})
        for text, mark in zip(texts, right, strict=True)
    ]
    (folder / "predictions-test.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def read(folder: Path) -> Prediction:
    found = read_predictions(folder)
    assert found is not None
    return found


def test_two_runs_in_one_sentence(tmp_path: Path) -> None:
    good, bad = said(tmp_path / "good", "1111111110"), said(tmp_path / "bad", "0000000001")
    sentence = paired_test(good, bad)
    assert sentence is not None and "+80.0% in accuracy" in sentence
    assert "first is right 9 times, only the second 1 times: p = 0.021" in sentence
    assert sentence.endswith("a significant difference between these two runs.")
    assert paired_test(good, tmp_path / "none") is None


def test_other_examples_are_refused(tmp_path: Path) -> None:
    one, two = said(tmp_path / "one", "1111111110"), said(tmp_path / "two", "1111111110", "abcdefghik")
    assert "different examples" in (paired_test(one, two) or "")
    both = read(one), read(two)
    with pytest.raises(UserError, match="different examples"):
        pair_runs(("one", "two"), both, [both])


def test_a_broken_file_is_told_with_its_line(tmp_path: Path) -> None:
    run = said(tmp_path / "run", "1111111110")
    with (run / "predictions-test.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(UserError, match="line 11"):
        read(run)
