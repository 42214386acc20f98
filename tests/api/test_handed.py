"""Texts, pairs and labelled texts where a file is expected: the numbers of a file, and a file beside the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from tests.api.conftest import FAST, SHAPE, TEXT

import attnlab as lab
from attnlab.api.handed import content_of
from attnlab.models.run_questions import run_questions

PAIRS = [("Where?", "Rome"), ("Who?", "Ada")]
LABELLED = [("good", True), ("bad", False)]


@pytest.mark.parametrize(
    "value", [["a", "b"], ("a", "b"), np.array(["a", "b"]), pandas.Series(["a", "b"]), (text for text in "ab")]
)
def test_texts(value: Any) -> None:
    assert content_of("data", value) == (".txt", "a\nb\n")


@pytest.mark.parametrize("value", [PAIRS, [list(pair) for pair in PAIRS], np.array(PAIRS), pandas.DataFrame(PAIRS)])
def test_pairs(value: Any) -> None:
    assert content_of("data", value) == (".tsv", "Where?\tRome\nWho?\tAda\n")


def test_one_column_is_texts() -> None:
    assert content_of("data", pandas.DataFrame({"text": ["a", "b"]})) == content_of("data", ["a", "b"])


@pytest.mark.parametrize("value", [LABELLED, np.array(LABELLED, dtype=object), pandas.DataFrame(LABELLED)])
def test_labelled_texts(value: Any) -> None:
    ending, text = content_of("task", value, labelled=True)
    rows = [json.loads(line) for line in text.splitlines()]
    assert ending == ".jsonl" and rows == [{"text": "good", "label": "true"}, {"text": "bad", "label": "false"}]
    assert json.loads(content_of("task", [("a", "b", 1)], labelled=True)[1]) == {"text": "a", "pair": "b", "label": "1"}


@pytest.mark.parametrize("value", [[("a", None)], [(1, "b")], ["ab"], [("a", "b", "c", "d")], []])
def test_what_is_not_labelled_is_refused(value: Any) -> None:
    with pytest.raises(lab.UserError, match="task: "):
        content_of("task", value, labelled=True)


def test_a_text_at_hand_is_measured_as_its_file_and_kept_beside_the_results(small: lab.GPT) -> None:
    run = lab.train(small, [TEXT], steps=2, **FAST)
    Path("other.txt").write_text(TEXT[:400] + "\n")
    given = run.evaluate([TEXT[:400]])
    assert given["loss"] == run.evaluate("other.txt")["loss"]
    assert Path(given["source"]).read_text() == Path("other.txt").read_text()
    assert given["command"] == f"lab.evaluate('{run.path}', '{given['source']}')"
    kept = set(run.path.rglob("*"))
    ablation = run.ablate([TEXT[:400]], most=4)
    assert [each.changes for each in ablation.effects] == [
        each.changes for each in run.ablate("other.txt", most=4).effects
    ]
    assert lab.removal_curve(run, [TEXT[:400]], most=4, ablation=ablation).points
    assert {path.name[:5] for path in set(run.path.rglob("*")) - kept} == {"data-"}


def test_questions_at_hand(folder: Path) -> None:
    steps = {"pretrain.training.steps": 2, "finetune.training.steps": 2, "threads": 1}
    asked = lab.knowledge(lab.GPT(**(SHAPE | {"context": 64})), people=20, places=4, **steps)
    pairs = [tuple(pair) for pair in run_questions(asked.path, [])["test"]][:3]
    measured = asked.evaluate(pairs, unseen_names=0)
    assert measured["accuracy"]["count"] == 3
    assert len(repr(measured)) < 400 and "calibration_error" in repr(measured)
    page = measured._repr_html_()
    assert "<td>accuracy</td>" in page and "of 3 questions" in page and "data:image/png" in page
    assert asked.trace(pairs, draws=1, sites="stream").people == 3
    assert lab.lens(asked, questions=pandas.DataFrame(pairs)).people == 3  # type: ignore[union-attr]
    unanswered = asked.evaluate([question for question, _ in pairs])
    assert unanswered.count == 3 and "predictions.txt" in unanswered._repr_html_()
