"""Assignment 6: every command of its README, from a clean copy of its folder, with tiny random models."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest
from tests.assignments.conftest import ASSIGNMENTS, CleanCopy

from attnlab.runs import read_config

pytest.importorskip("transformers")
NAME = "adapting-transformers"
WIDTH = 16
README = (ASSIGNMENTS / NAME / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^python (.*)$", README, re.MULTILINE)


@pytest.fixture
def course(clean_copy: Callable[[str], CleanCopy]) -> CleanCopy:
    return clean_copy(NAME)


def test_the_readme_has_a_command_for_every_question() -> None:
    shown = [shlex.split(command) for command in COMMANDS]
    assert [words[1:3] for words in shown if words[0] == "finetuning.py"] == [["--question", n] for n in "1234"]
    types = [words[1:3] for words in shown if words[0] == "efficient_finetuning.py"]
    assert types == [["--type", name] for name in ("full", "head", "prefix")]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_shown_command_runs(course: CleanCopy, command: str) -> None:
    code, out, err = course.run(*shlex.split(command), "--output", "out")
    assert code == 0, err
    found = course.results("out")
    assert found["figures"] and all((course.folder / "out" / name).is_file() for name in found["figures"])
    assert found["instead"] == [], "the command has the document's settings"
    assert out.count("metrics: accuracy=") >= len(found.get("chosen", found["runs"]))


def test_four_pairs_are_four_tests_and_all_are_compared(course: CleanCopy) -> None:
    """The document's pairs, which no product of rates and epochs gives; here with fewer epochs."""
    pairs = "1e-3/2,5e-4/1,125e-4/1,125e-4/2"
    code, _, err = course.run(
        "finetuning.py", "--question", "3", "--pairs", pairs, "--small_subset", "True", "--output", "out"
    )
    assert code == 0, err
    found = course.results("out")
    settings = [(run["lr"], run["num_epochs"]) for run in found["runs"]]
    assert settings == [(1e-3, 2), (5e-4, 1), (125e-4, 1), (125e-4, 2)]
    assert all("dev" in run and "test" in run for run in found["runs"])
    assert found["figures"] == ["question-3.png", "question-3-compared.png"]
    typed = "--pairs 0.001/2,0.0005/1,0.0125/1,0.0125/2"
    assert found["instead"] == [[typed, "--pairs 0.001/9,0.0005/7,0.0125/12,0.0125/20"]]


def test_the_tuned_parameters_are_the_documents(course: CleanCopy) -> None:
    words = ("--model", "bert-base-cased", "--small_subset", "True", "--num_epochs", "1", "--output", "out")
    code, out, err = course.run("efficient_finetuning.py", *words)
    assert code == 0, err
    tuned = {run["name"]: run["tuned_parameters"] for run in course.results("out")["runs"]}
    assert tuned["head"] == 2 * WIDTH + 2 and tuned["prefix"] == 130 * WIDTH + 2 < tuned["full"]
    assert f"= 2d + 2 with d = {WIDTH}" in out and f"= 130d + 2 with d = {WIDTH}" in out
    assert read_config(course.folder / "out" / "prefix")["tuning"]["length"] == 128


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["finetuning.py"], "--question"),
        (["finetuning.py", "--question", "5"], "choose from 1, 2, 3, 4"),
        (["finetuning.py", "--question", "3", "--pairs", "1e-3"], "a learning rate and epochs such as 5e-4/7"),
        (["finetuning.py", "--question", "3", "--pairs", "1e-3/0"], "whole number from 1, got '0'"),
        (["finetuning.py", "--question", "3", "--pairs", "high/3"], "a number above 0 such as 1e-4, got 'high'"),
        (["finetuning.py", "--question", "3", "--pairs", "1e-3/9", "--lr", "1e-3"], "leave out --lr"),
        (["finetuning.py", "--question", "1", "--pairs", "1e-3/9"], "questions 3 and 4"),
        (["finetuning.py", "--question", "3", "--model", "roberta-base,bert-base-cased"], "--model: question-3 takes"),
        (["finetuning.py", "--question", "4", "--model", "roberta-bsae"], "did you mean 'roberta-base'?"),
        (["efficient_finetuning.py", "--type", "lora"], "choose from full, head, prefix"),
        (["efficient_finetuning.py", "--lr", "1e-3,1e-4"], "--lr: efficient takes one value"),
        (["efficient_finetuning.py", "--device", "tpu"], "--device"),
    ],
)
def test_a_mistake_is_one_sentence(course: CleanCopy, words: list[str], told: str) -> None:
    code, _, err = course.run(*words)
    assert code == 2 and told in err and "Traceback" not in err
    assert not list(course.folder.rglob("run.json"))
