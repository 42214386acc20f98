"""The write-up of the attention assignment: tables are those of the results, figures exist, shown code is real."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from math import exp
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.assignments.attention_folder import FOLDER

from attnlab import explore

REPORT = (FOLDER / "report.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def write_up() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("write_up.__main__")
    sys.path.remove(str(FOLDER))
    for name in [name for name in sys.modules if name.split(".")[0] == "write_up"]:
        del sys.modules[name]


def test_the_tables_are_those_of_the_results(write_up: ModuleType) -> None:
    assert write_up.filled(REPORT, write_up.Store(FOLDER / "results")) == REPORT, "renew it: python -m write_up"


def test_every_table_has_its_place(write_up: ModuleType) -> None:
    assert sorted(re.findall(r"<!-- table: (.+?) -->", REPORT)) == sorted(write_up.BLOCKS)


def test_every_figure_of_the_report_exists() -> None:
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", REPORT)
    assert figures
    assert [figure for figure in figures if not (FOLDER / figure).is_file()] == []


def test_no_committed_result_is_of_a_tiny_run() -> None:
    results = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (FOLDER / "results").glob("*.json")}
    assert [name for name, content in results.items() if content["quick"]] == []


def test_links_lead_somewhere() -> None:
    for path in [*FOLDER.glob("A2S*.py"), FOLDER / "README.md", FOLDER / "report.md"]:
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "\n".join(line for line in lines if path.suffix == ".md" or line.startswith("#"))
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_question_is_answered() -> None:
    questions = [
        "Q1.1",
        "Q1.2",
        "Q2.1",
        "Q2.2",
        "Q2.3",
        "Q3.1",
        "Q3.2",
        "Q3.3",
        *(f"Q4.{n}" for n in range(1, 8)),
        "Q5.1",
    ]
    assert re.findall(r"^\*\*(Q\d\.\d)\b", REPORT, re.MULTILINE) == questions


def test_shown_code_is_the_notebook_s() -> None:
    source = (FOLDER / "A2S2.py").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", REPORT, re.DOTALL)
    assert shown
    assert all(code in source for code in shown)


def test_the_printed_answers_count_with_the_digits_shown() -> None:
    """A reader who copies the three decimals of the table gets the required outputs within the allowed 0.05."""
    example = explore.example("selection")
    K, V = example.keys, example.values
    rows = dict(re.findall(r"^\| (1\.\d\.\d) \| \w+ = (.+?) \|", REPORT, re.MULTILINE))
    answers = {
        name: np.array(json.loads(f"[{text.replace(';', ',')}]".replace("(", "[").replace(")", "]")))
        for name, text in rows.items()
    }
    third = {name: np.vstack([K[:2], answers[name], K[3:]]) for name in ("1.4.1", "1.4.2")}
    outputs = {
        "1.2.1": (explore.attend(answers["1.2.1"], K, V), V[:1]),
        "1.2.2": (explore.attend(answers["1.2.2"], K, V), V),
        "1.3.1": (explore.attend(answers["1.3.1"], K, V), V.mean(axis=0)),
        "1.3.2": (explore.attend(answers["1.3.2"], K, V), V[:2].mean(axis=0)),
        "1.4.1": (explore.attend(answers["1.3.2"], third["1.4.1"], V), V[:3].mean(axis=0)),
        "1.4.2": (explore.attend(answers["1.3.2"], third["1.4.2"], V), V[2]),
    }
    assert {
        name: bool(np.abs(output - target).max() <= 0.05) for name, (output, target) in outputs.items()
    } == dict.fromkeys(rows, True)
    assert np.linalg.norm(answers["1.4.2"]) == pytest.approx(1, abs=1e-3)
    assert len(rows) == 6


def training(seed: int, **settings: Any) -> dict[str, Any]:
    """A training of two epochs, the second better on dev."""
    values = [
        {"train": {"accuracy": a, "loss": 0.5}, "dev": {"accuracy": b, "loss": 0.4 + n}}
        for n, (a, b) in enumerate([(0.6, 0.7), (0.9, 0.75)])
    ]
    return {
        "settings": {
            "model": "m",
            "optimizer": "AdamW",
            "rate": 5e-5,
            "batch": 64,
            "epochs": 2,
            "seed": seed,
            **settings,
        },
        "task": "sst2",
        "notes": ["columns.", "test (2) taken."],
        "sentences": {"train": 10, "dev": 20, "test": 4},
        "curve": values,
        "best": 2,
        "seconds": 60.0,
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of every kind with known numbers."""
    common = {
        "quick": False,
        "command": "python X.py",
        "machine": {"cpu": "c", "cores": 2, "devices": []},
        "versions": {},
    }

    def run(loss: float, hidden: float) -> dict[str, Any]:
        return {
            "training": [3.0, loss],
            "validation": [[1, 2.0], [2, loss]],
            "last_training": loss,
            "last_validation": loss,
            "another_future": 2.0,
            "as_they_come": hidden,
            "sample": "a | b",
            "seconds": 30.0,
            "parameters": 1000,
        }

    masks = {
        "tests": {"1": 1e-7},
        "settings": {
            "layers": 1,
            "heads": 2,
            "width": 8,
            "context": 4,
            "steps": 2,
            "batch": 2,
            "rate": 1e-3,
            "seeds": [0, 1],
        },
        "runs": {"normal": {"0": run(1.0, 1.0), "1": run(1.2, 1.2)}, "naive": {"0": run(0.5, 3.0), "1": run(0.7, 3.0)}},
    }
    files: dict[str, dict[str, Any]] = {
        "A2S1": {"exercises": [{"exercise": "1.2.1", "what": "q", "found": [1.0, -2.0, 3.0], "error": 0.0}]}
    }
    for tokens in ("words", "characters"):
        data = {"text": "t", "tokens": tokens, "vocabulary": 9, "unknown": 0.1, "training": 9, "held_out": 1}
        files[f"A2S2-{tokens}"] = {**masks, "data": data}
    first = {"lengths": {"train": 10, "dev": 20, "test": 4}, "first_batch": {"input_ids": ["torch.int64", [8, 9]]}}
    for seed in (0, 1):
        files[f"A2S3-AdamW-seed{seed}"] = {**training(seed), **first}
        scores = {split: {"accuracy": 0.75, "loss": 1.0} for split in ("train", "dev", "test")}
        files[f"A2S3-final-seed{seed}"] = {
            **training(seed),
            "scores": scores,
            "test_right": 3,
            "test_count": 4,
            "constant_right": 2,
        }
    for name in ("SGD", "SGD-1000x", "Adagrad"):
        files[f"A2S3-{name}-seed0"] = training(0, optimizer=name[:3])
    files["A2S3-search"] = {"cells": [training(0)]}
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({**content, **common}), encoding="utf-8")
    return tmp_path


def test_results_fill_every_table(write_up: ModuleType, results: Path) -> None:
    page = write_up.filled(REPORT, write_up.Store(results))
    blocks = {block["name"]: block["content"] for block in write_up.BLOCK.finditer(page)}
    assert [name for name, content in blocks.items() if not content.strip()] == []
    assert "| naive | 1 | " in blocks["masks, words"]
    assert f"{exp(0.5):.3f} | {exp(0.5):.3f} | {exp(2.0):.3f} | {exp(3.0):.3f} |" in blocks["masks, words"]
    assert "| naive − normal | nats | " in blocks["masks, words"] and "-0.500 ± 0.000" in blocks["masks, words"]
    assert "| 2 | 90.0% ± 0.0% | 75.0% ± 0.0% | 0.500 ± 0.000 | 1.400 ± 0.000 |" in blocks["curves"]
    assert "| 0 | 2: 90.0% | 2: 75.0% (53.1% to 88.8%) |" in blocks["best epochs"]
    assert "| 1 | 75.0% | 75.0% |" in blocks["final"]
    assert "| 1 | 3 of 4 | 75.0% (30.1% to 95.4%) |" in blocks["test"]
    assert write_up.filled(page, write_up.Store(results / "none")).count("<!-- end -->") == len(blocks)
    assert write_up.filled(page, write_up.Store(FOLDER / "results")) == REPORT, "what was filled in can be renewed"


@pytest.mark.slow
def test_results_draw_every_figure_that_they_show(write_up: ModuleType, results: Path, tmp_path: Path) -> None:
    store = write_up.Store(results)
    drawn = {f"figures/{path.name}" for path in write_up.draw_all(store, tmp_path / "figures")}
    shown = set(re.findall(r"!\[[^\]]+\]\(([^)]+)\)", write_up.filled(REPORT, store)))
    assert shown - drawn == {"figures/copy.png", "figures/reach-square.png"}, "those of A2S1"
    assert all((tmp_path / figure).is_file() for figure in drawn)
