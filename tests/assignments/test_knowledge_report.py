"""The tables of the report on pretraining are those of the results beside it, and every experiment is shown."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.assignments.conftest import ASSIGNMENTS

FOLDER = ASSIGNMENTS / "self-attention-transformers-pretraining"


@pytest.fixture(scope="module")
def write_up() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "write_up.py"))


COST = {"epochs": 2, "characters": 1234567, "seconds": 90.0, "notes": [], "machine": {}}


def result(about: str, right: int) -> dict[str, Any]:
    return {
        "about": about,
        "variant": "vanilla",
        "seed": 0,
        "commands": ["python src/run.py pretrain vanilla wiki.txt --writing_params_path x --seed 0 --preset fast"],
        "dev": {"right": right, "total": 500, "accuracy": right / 500, "interval": [0.1, 0.2]},
        "trace": {"retrieved": {"answers": right + 3, "right": right}},
        "examples": {
            "right": [{"question": "Where was Ada born?", "answer": "Rome", "expected": "Rome", "lines": "3,7"}],
            "wrong": [
                {"question": "Where was Bob born?", "answer": "Oslo", "expected": "Bonn", "lines": "", "kind": "k"}
            ],
        },
        "pretrain": {**COST, "losses": [3.5, 2.25]},
        "finetune": COST,
    }


def test_the_report_shows_the_results_that_are_kept(write_up: dict[str, Any]) -> None:
    report = (FOLDER / "report.md").read_text(encoding="utf-8")
    assert write_up["filled"](report, write_up["results"]()) == report, "run: python write_up.py"


def test_every_experiment_has_a_row_once_it_is_measured(write_up: dict[str, Any]) -> None:
    names = list(runpy.run_path(str(FOLDER / "experiments.py"))["EXPERIMENTS"])
    measured = {name: result(f"about {name}", 100) for name in names}
    tables = ["\n".join(table(measured)) for table in write_up["TABLES"].values()]
    by_name = dict(zip(write_up["TABLES"], tables, strict=True))
    shown = by_name["accuracies"] + by_name["ablations"]
    assert [name for name in names if f"about {name} " not in shown and f"`{name}`" not in shown] == []
    assert all(f"`{name}`" in by_name["commands"] for name in names)
    assert all(tables), "every table has something to show"


def test_the_report_has_a_place_for_every_table_figure_and_output(write_up: dict[str, Any]) -> None:
    experiments = runpy.run_path(str(FOLDER / "experiments.py"))
    report = (FOLDER / "report.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- table: (\S+) -->", report)) == sorted(write_up["TABLES"])
    assert re.findall(r"<!-- output: (\S+) -->", report) == list(experiments["OUTPUTS"])
    page = write_up["filled"](report, {name: result(f"about {name}", 100) for name in experiments["EXPERIMENTS"]})
    assert set(re.findall(r"\]\((figures/\w+\.png)\)", page)) == {f"figures/{name}.png" for name in write_up["FIGURES"]}
    assert write_up["filled"](page, write_up["results"]()) == report, "what was filled in can be renewed"


@pytest.mark.slow
def test_every_figure_is_drawn(write_up: dict[str, Any], tmp_path: Path) -> None:
    experiments = runpy.run_path(str(FOLDER / "experiments.py"))["EXPERIMENTS"]
    measured = {name: result(f"about {name}", 100) for name in experiments}
    drawn = write_up["draw_all"](measured, tmp_path)
    assert [path.stem for path in drawn] == list(write_up["FIGURES"])
    assert all(path.stat().st_size > 5000 for path in drawn)
    assert [path.stem for path in write_up["draw_all"]({}, tmp_path)] == ["accuracy"]


def test_parts_without_pretraining_in_words(write_up: dict[str, Any]) -> None:
    first, rest, other = write_up["scratch"]({name: result("", 10) for name in ("scratch-vanilla", "scratch-fast")})
    assert "2 epochs in 2 minutes: 10 of 500 dev answers are right, **2.0% (10.0% to 20.0%)**" in first
    assert "at this rate they would take 56 here" in rest and "those of the preset" in other
    text, _, figure = write_up["course"]({"course-vanilla": result("", 10)})
    assert "2 of the 650 passes" in text and "from 3.50 in the first pass to 2.25 in the last" in text
    assert "All passes would take 8 hours" in text and "figures/course.png" in figure
    rows = list(write_up["examples"]({"fast-vanilla": result("", 10)}))
    assert rows[-2:] == [
        "| Where was Ada born? | Rome | Rome | line 3, 7 |",
        "| Where was Bob born? | Oslo | Bonn | k |",
    ]
    older = {name: value for name, value in result("", 10).items() if name != "examples"}
    two = {"fast-vanilla": older, "ten-minutes": result("", 9)}
    assert "of `ten-minutes` on dev" in next(write_up["examples"](two)), "the longest that has some"
    for name in ("scratch", "course", "examples"):
        assert list(write_up[name]({})) == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(FOLDER, tmp_path / "copy", ignore=shutil.ignore_patterns("runs", "__pycache__", "results"))


def experiment(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "experiments.py", *words], cwd=folder, capture_output=True, text=True)


def test_the_hand_in_has_the_documents_names(copy: Path) -> None:
    """From the first experiment that is there; what was made of which is kept."""
    (copy / "runs").mkdir()
    (copy / "runs" / "src").symlink_to(copy / "src")
    for name in ("scratch-vanilla", "fast-vanilla-half-2", "ten-synthesizer"):
        for file in ("finetune.params", "dev.predictions", "test.predictions"):
            (copy / "runs" / f"{name}.{file}").write_text(f"{name} {file}\n")
    assert experiment(copy, "hand-in").returncode == 0
    kept = (copy / "results" / "hand-in.txt").read_text()
    assert "vanilla.finetune.params and vanilla.pretrain.*.predictions: fast-vanilla-half-2\n" in kept
    assert kept.endswith("assignment_yourname.zip\n") and "  vanilla.nopretrain.dev.predictions\n" in kept
    with zipfile.ZipFile(copy / "runs" / "assignment_yourname.zip") as archive:
        assert len(archive.namelist()) == 9 + len(list((copy / "src").glob("*.py")))
        assert archive.read("synthesizer.pretrain.test.predictions") == b"ten-synthesizer test.predictions\n"
        assert archive.read("vanilla.model.params") == b"scratch-vanilla finetune.params\n"


def test_a_hand_in_without_models_is_one_sentence(copy: Path) -> None:
    done = experiment(copy, "hand-in")
    assert done.returncode and done.stderr.count("\n") == 1
    assert "runs/ has no model for vanilla.model.params: run python experiments.py scratch-vanilla first" in done.stderr
    assert "unknown experiment 'nonsense'" in experiment(copy, "nonsense").stderr
    listed = experiment(copy, "--list").stdout
    assert "hand-in:\n  ./collect_submission.sh yourname\n" in listed and "ten-synthesizer: " in listed


def test_the_numbers_of_a_row_and_the_difference_to_the_preset(write_up: dict[str, Any]) -> None:
    measured = {"ten-minutes": result("as it is", 100), "ten-all": result("all at once", 50)}
    rows = list(write_up["ablations"](measured))[2:]
    assert rows[0] == "| as it is | 1,234,567 | 2 | 20.0% (10.0% to 20.0%) |  |"
    assert rows[1].endswith("| 10.0% (10.0% to 20.0%) | -10.0% |")
    (row,) = list(write_up["accuracies"]({"fast-vanilla": result("preset fast", 100)}))[2:]
    assert row.endswith("| 103, 100 right | 0, 0 right |")


@pytest.mark.slow
def test_an_experiment_from_pretraining_to_its_row(copy: Path, cli_environment: dict[str, str]) -> None:
    """At tiny size; a second call finds its result, and a new one its models."""
    for name in ("wiki.txt", "birth_places_train.tsv", "birth_dev.tsv", "birth_test_inputs.tsv"):
        people = [("Ada", "Rome"), ("Bob", "Oslo"), ("Cleo", "Lima")]
        line = "{0}. {0} was born in {1}. Where?\n" if name == "wiki.txt" else "Where was {0} born?\t{1}\n"
        line = "Where was {0} born?\n" if "test" in name else line
        (copy / name).write_text("".join(line.format(*person) for person in people))
    script = copy / "experiments.py"
    script.write_text(script.read_text().replace("EPOCHS = 14", 'EPOCHS = "12 --layers 1 --heads 2 --width 16"'))

    def called() -> str:
        done = subprocess.run(
            [sys.executable, "experiments.py", "ten-all"], cwd=copy, capture_output=True, text=True, env=cli_environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    first, kept = called(), copy / "results" / "ten-all.json"
    assert first.count("python src/run.py") == 4 and first.endswith("ten-all: results/ten-all.json\n")
    measured = json.loads(kept.read_text())
    assert measured["dev"]["total"] == 3 and 0 < len(measured["pretrain"]["losses"]) <= 12
    assert sum(counts["answers"] for counts in measured["trace"].values()) == 3
    assert sum(map(len, measured["examples"].values())) == 3
    assert (copy / "runs" / "ten-all.test.predictions").read_text().count("\n") == 3
    assert called() == "ten-all: results/ten-all.json exists, nothing to do\n"
    kept.unlink()
    assert called().count("python src/run.py") == 2, "the models are there: only the questions are asked again"
    tables = runpy.run_path(str(FOLDER / "write_up.py"))["TABLES"]
    assert "all phrases hidden at once" in "\n".join(tables["ablations"]({"ten-all": measured}))
