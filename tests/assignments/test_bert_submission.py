"""The report of the BERT assignment: its code, its numbers and their statistics; the experiments; the hand-in."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from scipy import stats

Load = Callable[[str], ModuleType]
FOLDER = Path(__file__).parents[2] / "assignments" / "natural-language-processing-4"
REPORT = (FOLDER / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["BertForSequenceClassification", "BertForMaskedLanguageModel", "BertForCLSMLM"])
def test_the_report_shows_the_code_of_mymodel(name: str) -> None:
    source = (FOLDER / "mymodel.py").read_text(encoding="utf-8")
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == name)
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    assert "\n".join(["```python", *lines, "```"]) in REPORT


def test_the_blocks_of_the_report_are_what_collect_writes(bert: Load, copy: Path) -> None:
    results = {path.stem: json.loads(path.read_text()) for path in (FOLDER / "results").glob("*.json")}
    run(copy, "collect.py", "--report")
    assert (copy / "report.md").read_text(encoding="utf-8") == REPORT
    named = re.findall(r"<!-- block: ([\w ]+) -->", REPORT)
    assert set(bert("tables").BLOCKS) == {name for name in named if not name.startswith("code ")}
    assert len(named) == len(set(named)) == REPORT.count("<!-- end -->")
    empty = re.findall(r"<!-- block: ([\w ]+) -->\s*<!-- end -->", REPORT)
    assert bool(empty) == (not results), "results and tables belong together"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The folder alone, as it is handed in, without results."""
    return shutil.copytree(FOLDER, tmp_path / "folder", ignore=shutil.ignore_patterns("__pycache__", "runs"))


def run(folder: Path, *words: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    command = [sys.executable, *words] if words[0].endswith(".py") else ["bash", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_the_intervals_are_those_of_scipy(bert: Load) -> None:
    collect = bert("collect")
    for right, count in ((0, 10), (237, 450), (450, 450)):
        expected = stats.binomtest(right, count).proportion_ci(method="wilson")
        assert collect.wilson(right / count, count) == pytest.approx([expected.low, expected.high], abs=1e-12)
    for gained, lost in ((0, 0), (3, 9), (31, 30), (50, 20)):
        expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
        assert collect.mcnemar(gained, lost) == pytest.approx(expected)
    assert collect.mcnemar_counts("01234", "01200", "00034") == (2, 2)
    for values in ([0.3, 0.5], [0.31, 0.28, 0.35]):
        low, high = stats.t.interval(0.95, len(values) - 1, sum(values) / len(values), stats.sem(values))
        assert collect.half_width(values) == pytest.approx((high - low) / 2, rel=1e-3)
    assert collect.half_width([0.3]) is None


def made_up(name: str, seed: int, joint: bool, labels: int) -> dict:
    """What a run leaves, with answers drawn at random."""
    draw = random.Random(name)
    history = [
        {"step": step, "loss": 2.0, "dev_acc": draw.random(), "dev_loss": 1.5}
        | ({"cls_loss": 1.5, "mlm_loss": 10.0 - step / 100} if joint else {})
        for step in (50, 100, 150)
    ]
    right, found = ("".join(draw.choices("01234", k=450)) for _ in range(2))
    accuracy = sum(map(str.__eq__, right, found)) / 450
    return {
        "options": {"learning_rate": 1e-4, "max_seq_length": 128, "seed": seed} | ({"mlm_alpha": 0.3} if joint else {}),
        "start": {"folder": "some-bert", "sha256": "a" * 64},
        "files": {"train": "b" * 64},
        "steps": 150,
        "epochs": 3.0,
        "best_step": 100,
        "seconds": 331.0,
        "cpu_seconds": 600.0,
        "history": history,
        "texts": {"train": labels, "dev": 500, "test": 450},
        "cut": {"train": labels // 2, "dev": 1, "test": 1},
        "machine": {"processor": "a CPU", "cores": 2, "threads": 2, "torch": "2.13.0+cpu", "python": "3.11.7"},
        "scores": {"dev_acc": history[1]["dev_acc"], "dev_loss": 1.5, "test_acc": accuracy, "test_loss": 1.6},
        "answers": {split: {"labels": right, "predicted": found} for split in ("dev", "test")},
    }


@pytest.fixture
def collected(bert: Load, copy: Path) -> Path:
    """A copy of the folder whose results, figures and report come from made-up runs."""
    for measured in (copy / "results").glob("problem*.json"):
        measured.unlink()
    collect = bert("collect")
    names = {*collect.PROBLEM_2, *(name for group in collect.PROBLEM_3.values() for name in group)}
    for name in names - {"all-alone-43", "all-alone-44", "all-joint-43", "all-joint-44"}:
        seed = int(name[-2:]) if name[-3] == "-" and name[-2:].isdecimal() and name[-2:] != "64" else 42
        (copy / "runs" / name).mkdir(parents=True)
        content = made_up(name, seed, "joint" in name or "strong" in name, 50 if name.startswith("50") else 3200)
        (copy / "runs" / name / "results.json").write_text(json.dumps(content))
    run(copy, "collect.py")
    return copy


def test_every_number_in_the_tables_is_that_of_its_file(collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the check that all reports pass."""
    spec = importlib.util.spec_from_file_location("reports", Path(__file__).with_name("test_reports.py"))
    assert spec is not None and spec.loader is not None
    reports = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "reports", reports)
    spec.loader.exec_module(reports)
    monkeypatch.setattr(reports, "ANSWERS", collected.parent)
    monkeypatch.setattr(reports, "PAGES", ["folder/report.md"])
    claims = [claim for claim in reports.claims() if claim.name.startswith("results:")]
    assert len(claims) > 150
    for claim in claims:
        reports.test_a_computed_number_is_true(claim)
    reports.test_every_number_has_a_source("folder/report.md")
    report = (collected / "report.md").read_text(encoding="utf-8")
    for figure in re.findall(r"\]\((figures/[\w.]+)\)", report):
        assert (collected / figure).stat().st_size > 1000
    found = json.loads((collected / "results" / "problem3.json").read_text())
    assert found["groups"]["50-joint"]["seeds"] == [42, 43, 44] and found["groups"]["all-joint"]["seeds"] == [42]
    alone, joint = (found["groups"][f"50-{name}"]["test_acc"] for name in ("alone", "joint"))
    assert found["differences"]["50-joint"]["test_acc"] == pytest.approx(joint - alone)


def test_the_hand_in_lists_what_is_in_it(collected: Path) -> None:
    done = run(collected, "make_submission.py", "hand-in.zip")
    names = zipfile.ZipFile(collected / "hand-in.zip").namelist()
    assert all(name in done.stdout for name in names) and f"{len(names)} files" in done.stdout
    assert {"report.md", "README.md", "classifier.py", "classifier_mlm.py", "mymodel.py"} < set(names)
    assert {"data_utils.py", "mlm_utils.py", "bert.py", "experiments.sh", "collect.py"} < set(names)
    assert {"results/problem2.json", "results/problem3.json", "figures/noise.png", "figures/problem2.svg"} < set(names)
    assert not any("runs" in name or "pycache" in name or name.endswith((".zip", ".pt")) for name in names)
    for missing, sentence in (
        ("figures/problem3.svg", "report.md shows figures/problem3.svg, which is missing"),
        ("results/problem2.json", "results/problem2.json is missing: run ./experiments.sh, then python collect.py."),
        ("mymodel.py", "mymodel.py is missing: restore it."),
        ("report.md", "report.md is missing: write it."),
    ):
        (collected / missing).unlink()
        told = run(collected, "make_submission.py", "none.zip", code=2).stderr
        assert told.startswith(f"error: {sentence}") and told.count("\n") == 1
        assert not (collected / "none.zip").exists()


def test_a_missing_run_is_named(copy: Path) -> None:
    done = run(copy, "collect.py", code=2, RUNS="nothing")
    assert done.stderr == "error: nothing/lr-3e-5 has no finished training: run ./experiments.sh first.\n"
    assert "unknown part 'problem4'" in run(copy, "experiments.sh", "problem4", code=2).stderr


@pytest.mark.slow
def test_all_experiments_at_tiny_size_from_a_clean_copy(place: Path, copy: Path) -> None:
    """The script as it is, with a tiny model and few reviews; given again, it finds everything done."""
    shutil.rmtree(copy / "results", ignore_errors=True)
    variables = {
        "DATA": str(place / "yelp_small"),
        "UNLABELED": str(place / "unlabeled_train_50000.txt"),
        "MODEL": "huawei-noah/TinyBERT_General_4L_312D",
        "ATTNLAB_MODELS": str(place / "models"),
        "PYTHON": sys.executable,
    }
    run(copy, "experiments.sh", **variables)
    done = run(copy, "experiments.sh", "problem2", **variables)
    assert done.stderr.count("has this training, finished") == 6
    runs = {path.name: json.loads((path / "results.json").read_text()) for path in (copy / "runs").iterdir()}
    assert len(runs) == 6 + 1 + 9
    assert runs["length-64"]["options"]["max_seq_length"] == 64 and runs["epochs-4"]["epochs"] == 4
    assert (
        runs["50-strong-43"]["options"] | {"seed": 43, "mlm_alpha": 1.0, "train_examples": 50}
        == (runs["50-strong-43"]["options"])
    )
    run(copy, "collect.py")
    run(copy, "make_submission.py")
    assert (copy / "submission.zip").is_file()
