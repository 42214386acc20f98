"""A comparison's folder with files that were changed or damaged: each is named in one sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.base.errors import RunFailed, UserError
from attnlab.experiments.compare import gather_comparison, resume_comparison, run_comparison
from attnlab.experiments.config import LanguageComparison
from attnlab.experiments.experiment import COMPARISON

CELL = "cells/vanilla/seed-0"


@pytest.fixture(scope="module")
def compared(small: Callable[..., LanguageComparison], tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = small(compare={"attention": "vanilla", "seeds": 1}, measures={"test_contexts": "8,16"})
    return run_comparison(config, tmp_path_factory.mktemp("damaged") / "comparison")


@pytest.fixture
def copy(compared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compared, tmp_path / "comparison"))


def report(path: Path) -> None:
    COMPARISON.saved(path)
    gather_comparison(path)


@pytest.mark.parametrize(
    ("file", "values", "sentence"),
    [
        ("run.json", {"kind": None}, r"run\.json is damaged: kind"),
        ("run.json", {"variants": []}, r"run\.json is damaged: variants"),
        ("run.json", {"variants": {"vanilla": {"failures": ["x"]}}}, r"variants\.vanilla\.failures"),
        ("run.json", {"variants": {"vanilla": {"failures": {}, "future": 3}}}, r"variants\.vanilla\.future"),
        ("run.json", {"machine": "fast"}, r"run\.json is damaged: machine"),
        ("run.json", {"versions": [1]}, r"run\.json is damaged: versions"),
        ("run.json", {"git": "main"}, r"run\.json is damaged: git"),
        ("run.json", {"command": None}, r"run\.json is damaged: command"),
        (f"{CELL}/run.json", {"results": None}, "results"),
        (f"{CELL}/run.json", {"results": {"dev_loss": "low"}}, "dev_loss"),
        (f"{CELL}/run.json", {"training": {}}, r"training\.seconds is missing"),
        (f"{CELL}/run.json", {"data": {"train_tokens": "many"}}, r"data\.train_tokens"),
        (f"{CELL}/run.json", {"parameters": "many"}, "parameters"),
        (f"{CELL}/lengths.json", {"8": 3}, r"lengths\.json: 8"),
        (f"{CELL}/lengths.json", {"x": {"reason": "none"}}, "'x' is not a length"),
    ],
)
def test_a_value_of_another_kind_is_one_sentence(file: str, values: dict[str, Any], sentence: str, copy: Path) -> None:
    target = copy / file
    target.write_text(json.dumps({**json.loads(target.read_text()), **values}))
    with pytest.raises(UserError, match=sentence) as told:
        report(copy)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ("model: {layers: 1}\n", "'compare' is no group of settings"),
        ("compare: vanilla\n", "'compare' is no group of settings"),
        ("compare: {job: languages}\n", "unknown job"),
        ("compare: {job: [language]}\n", "unknown job"),
    ],
)
def test_a_plan_of_another_kind_is_one_sentence(plan: str, sentence: str, copy: Path) -> None:
    (copy / "config.yaml").write_text(plan)
    with pytest.raises(UserError, match=sentence):
        report(copy)


@pytest.mark.parametrize("line", ["[]", '{"split": "dev"}', '{"step": "x", "split": "dev", "loss": 1}', "\x00"])
def test_lines_of_metrics_that_say_nothing_are_left_out(line: str, copy: Path) -> None:
    metrics = copy / CELL / "metrics.jsonl"
    metrics.write_text(f"{line}\n{metrics.read_text()}{line}\n")
    report(copy)


@pytest.mark.parametrize("content", [b"fp99", b"\xff\xfe", b""])
def test_a_damaged_precision_is_the_reason_of_each_row(content: bytes, copy: Path) -> None:
    (copy / "precision.txt").write_bytes(content)
    shutil.rmtree(copy / CELL)
    config = COMPARISON.saved(copy)
    config.machine.precision = "auto"
    with pytest.raises(RunFailed, match=r"precision\.txt: expected fp32, bf16 or fp16"):
        resume_comparison(copy, config)


def test_a_cell_that_is_a_link_to_elsewhere_is_refused_and_nothing_there_is_touched(copy: Path) -> None:
    mine = copy.parent / "mine"
    (mine / "seed-0").mkdir(parents=True)
    (mine / "seed-0" / "letter.txt").write_text("mine")
    shutil.rmtree(copy / "cells" / "vanilla")
    (copy / "cells" / "vanilla").symlink_to(mine)
    with pytest.raises(UserError, match="is a link to"):
        resume_comparison(copy, COMPARISON.saved(copy))
    assert [path.name for path in mine.rglob("*")] == ["seed-0", "letter.txt"]
