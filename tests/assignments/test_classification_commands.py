"""Homework 6: every command of the document, from a clean copy of its folder, with tiny random models."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.assignments.conftest import CleanCopy

from attnlab.base.errors import UserError
from attnlab.base.machine import facts
from attnlab.base.machine.facts import resolve_device
from attnlab.config.sections import AUTO_STEPS
from attnlab.jobs.study import study
from attnlab.runs import read_config, read_record

pytest.importorskip("transformers")
NAME = "training-transformer-language-models"
SCRIPT = "classification.py"
PRINTED = """--experiment "overfit" --small_subset True --device cuda --model "distilbert-base-uncased"
--batch_size "64" --lr 1e-4 --num_epochs 20"""
FEW = ("--small_subset", "True", "--num_epochs", "1")


@pytest.fixture
def course(clean_copy: Callable[[str], CleanCopy]) -> CleanCopy:
    return clean_copy(NAME)


def ran(course: CleanCopy, experiment: str, *words: object) -> tuple[str, str, dict[str, Any]]:
    """An experiment that must succeed: its output, its messages, its results."""
    code, out, err = course.run(SCRIPT, "--experiment", experiment, "--device", "cpu", "--output", "out", *words)
    assert code == 0, err
    return out, err, course.results("out")


def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


def test_the_printed_command_runs_without_a_gpu_says_so_once_and_records_it(
    course: CleanCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_gpu(monkeypatch)
    code, out, err = course.run(SCRIPT, *shlex.split(PRINTED))
    assert code == 0, err
    assert "random chance on boolq: 50.0%" in out and " - Average TRAIN metrics: accuracy={'accuracy': " in out
    [folder] = (course.folder / "runs").glob("*-overfit")
    config, record = read_config(folder / "run"), read_record(folder / "run")
    assert config["model"]["name"] == "distilbert-base-uncased" and config["machine"]["device"] == "cpu"
    assert (config["batch"]["size"], config["training"]["epochs"], config["optimizer"]["lr"]) == (64, 20, 1e-4)
    said = "--device cuda: there is no GPU on this machine, so the CPU is used."
    assert err.count(said) == 1 and record["changes"].count(said) == 1
    results = course.results(str(folder.relative_to(course.folder)))
    assert said in results["changes"] and results["machine"]["device"] == "cpu"
    assert len(results["runs"][0]["by_epoch"]["train"]) == 20 and results["runs"][0]["train"]["count"] == 10
    assert (folder / "overfit.png").stat().st_size > 5000


def test_the_lab_itself_does_not_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu(monkeypatch)
    with pytest.raises(UserError, match="'cuda' does not exist on this machine"):
        resolve_device("cuda")


def test_a_device_that_is_no_gpu_of_the_document_is_still_an_error(
    course: CleanCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_gpu(monkeypatch)
    code, _, err = course.run(SCRIPT, "--experiment", "overfit", "--device", "cudaa")
    assert code == 2 and "'cudaa' is not a device" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--experiment"),
        (["--experiment", "overfitt"], "did you mean 'overfit'?"),
        (["--experiment", "overfit", "--small_subset", "maybe"], "True or False"),
        (["--experiment", "overfit", "--batch_size", "0"], "whole number from 1"),
        (["--experiment", "overfit", "--batch_size", "big"], "give a number, auto or largest"),
        (["--experiment", "overfit", "--lr", "fast"], "a number above 0 such as 1e-4, got 'fast'"),
        (["--experiment", "overfit", "--lr", "nan"], "a number above 0"),
        (["--experiment", "overfit", "--lr", ","], "at least one value"),
        (["--experiment", "overfit", "--num_epochs", "2.5"], "whole number from 1, got '2.5'"),
        (["--experiment", "overfit", "--seed", "-1"], "training.seed"),
        (["--experiment", "overfit", "--seed", "one"], "--seed"),
        (["--experiment", "overfit", "--examples", "20"], "10 instances"),
        (["--experiment", "overfit", "--max_length", "2"], "data.max_tokens"),
        (["--experiment", "overfit", "--small_subset", "False"], "10 instances"),
        (["--experiment", "overfit", "--lr", "1e-3,1e-4"], "--lr: overfit takes one value"),
        (["--experiment", "overfit", "--task", "nothing"], "neither a task nor a file"),
        (["--experiment", "overfit", "--modell", "x"], "--modell"),
        (["--experiment", "overfit", "--output", "README.md"], "cannot be created"),
        (["--experiment", "overfit", "--model", "distilbert-base-uncasd"], "did you mean 'distilbert-base-uncased'?"),
        (["--experiment", "full_training", "--examples", "4000"], "at most 40 training examples"),
        (["--experiment", "full_training", "--small_subset", "True", "--examples", "5"], "give only one"),
    ],
)
def test_a_mistake_is_one_sentence(course: CleanCopy, words: list[str], told: str) -> None:
    code, _, err = course.run(SCRIPT, *words)
    assert code == 2 and told in err and "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("error: ")]) == 1
    assert not list(course.folder.rglob("run.json"))


@pytest.mark.parametrize(
    ("words", "option", "value"),
    [(["--max-tokens", "12"], "max_tokens", "12"), (["--data-folder", "elsewhere"], "data_folder", "elsewhere")],
)
def test_an_option_that_a_message_of_the_lab_names_is_one_of_the_script(
    course: CleanCopy, words: list[str], option: str, value: str
) -> None:
    """The lab says --epochs, --max-tokens and --data-folder; a student types what was said."""
    shutil.copytree(os.environ["ATTNLAB_DATA"], course.folder / "elsewhere")
    ran(course, "overfit", *words, "--epochs", "1")
    config = read_config(course.folder / "out" / "run")
    assert Path(str(config["data"][option])).name == value and config["training"]["epochs"] == 1


def test_nothing_stays_of_an_experiment_that_could_not_begin(course: CleanCopy) -> None:
    code, _, err = course.run(SCRIPT, "--experiment", "overfit", "--model", "flan-t5-xl", "--device", "cpu")
    assert code == 2 and "'flan-t5-xl' is not here" in err
    assert list(course.folder.glob("runs/*")) == []


def test_auto_leaves_steps_and_the_largest_batch_is_in_the_results(course: CleanCopy) -> None:
    out, _, found = ran(course, "full_training", "--num_epochs", "2")
    [run] = found["runs"]
    assert run["batch_size"] == 40 // AUTO_STEPS and run["steps"] >= 2 * AUTO_STEPS
    assert found["largest_batch"]["size"] == 40 and found["largest_batch"]["bound"] == "examples"
    assert "the largest batch that fits: 40" in out
    for split in ("dev", "test"):
        assert f" - Average {split.upper()} metrics: accuracy={{'accuracy': {run[split]['accuracy']}}}" in out
        low, high = run[split]["interval"]
        assert low <= run[split]["accuracy"] <= high
    assert [len(run["by_epoch"][split]) for split in ("train", "dev")] == [2, 2]
    assert ["--num_epochs 2", "--num_epochs 30"] in found["instead"]
    assert found["chance"] == {"guess": 0.5, "dev": 0.5, "test": 0.5}
    before = (course.folder / "out" / "run" / "metrics.jsonl").read_bytes()
    assert ran(course, "full_training", "--num_epochs", "2")[2]["runs"] == found["runs"]
    assert (course.folder / "out" / "run" / "metrics.jsonl").read_bytes() == before, "a finished run is not run again"
    words = ("--experiment", "full_training", "--output", "out", "--num_epochs", "2", "--lr", "0.5")
    code, _, err = course.run(SCRIPT, *words, "--device", "cpu")
    assert code == 2 and "optimizer.lr" in err


def test_the_largest_batch_is_trained_on_request(course: CleanCopy) -> None:
    _, _, found = ran(course, "full_training", "--batch_size", "largest", "--num_epochs", "1")
    assert found["runs"][0]["batch_size"] == found["largest_batch"]["size"] == 40 and found["runs"][0]["steps"] == 1


@pytest.mark.slow
def test_the_best_of_the_grid_is_chosen_on_dev_and_tested_once(course: CleanCopy) -> None:
    out, _, found = ran(course, "parameter_tuning", "--small_subset", "True")
    settings = [(run["lr"], run["num_epochs"]) for run in found["runs"]]
    assert settings == [(lr, epochs) for lr in (1e-4, 5e-4, 1e-3) for epochs in (5, 7, 9)]
    [chosen] = found["chosen"]
    dev = [run["dev"]["accuracy"] for run in found["runs"]]
    assert chosen == dev.index(max(dev))
    assert [n for n, run in enumerate(found["runs"]) if "test" in run] == [chosen]
    assert out.count(" - Average TEST metrics:") == 1 and (course.folder / "out" / "parameter_tuning.png").is_file()


def test_a_signal_between_two_runs_stops_and_names_the_command_that_finishes(
    course: CleanCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = study.train

    def train_then_signal(*words: Any) -> Any:
        outcome = trained(*words)
        os.kill(os.getpid(), signal.SIGTERM)
        return outcome

    monkeypatch.setattr(study, "train", train_then_signal)
    words = ("--experiment", "parameter_tuning", "--lr", "1e-4,1e-3", "--device", "cpu", *FEW)
    code, _, err = course.run(SCRIPT, *words)
    assert code == 128 + signal.SIGTERM
    [folder] = (course.folder / "runs").glob("*-parameter_tuning")
    assert len(list(folder.rglob("run.json"))) == 1 and not (folder / "parameter_tuning.png").exists()
    [command] = re.findall(r"finish the figure with: python (.*)", err)
    monkeypatch.setattr(study, "train", trained)
    code, _, err = course.run(*shlex.split(command))
    assert code == 0, err
    assert len(list(folder.rglob("run.json"))) == 2 and (folder / "parameter_tuning.png").is_file()


@pytest.mark.slow
def test_six_encoders_as_printed(course: CleanCopy) -> None:
    out, _, found = ran(course, "cross_model", "--lr", "1e-3", *FEW)
    assert [run["model"] for run in found["runs"]] == [
        "distilbert-base-uncased",
        "bert-base-uncased",
        "bert-large-uncased",
        "bert-large-cased",
        "roberta-base",
        "roberta-large",
    ]
    assert out.count(" - Average DEV metrics:") == out.count(" - Average TEST metrics:") == 6
    assert (course.folder / "out" / "cross_model.png").is_file()


def test_a_model_that_cannot_be_reached_is_said_so_and_a_mistyped_name_is_an_error(course: CleanCopy) -> None:
    words = ("--model", "roberta-base,flan-t5-xl", "--lr", "1e-3", *FEW)
    out, _, found = ran(course, "cross_model", *words)
    assert found["runs"][0]["test"]["accuracy"] > 0
    assert found["runs"][1]["state"] == "unreachable" and "dev" not in found["runs"][1]
    assert "flan-t5-xl: not reached, " in out and "attnlab models get flan-t5-xl" in out
    assert str(Path.home()) not in found["runs"][1]["reason"], "the results can be kept elsewhere"
    for name, told in (("roberta-bsae", "did you mean 'roberta-base'?"), ("no/such/folder", "neither a folder nor")):
        words = ("--model", f"roberta-base,{name}", "--lr", "1e-3", *FEW)
        code, _, err = course.run(SCRIPT, "--experiment", "cross_model", "--output", f"no-{name[:4]}", *words)
        assert code == 2 and told in err
        assert not list(course.folder.glob("no-*/**/run.json")), "nothing is trained before"


def test_a_model_that_does_not_fit_is_tried_with_smaller_batches(
    course: CleanCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    enough_for = {"batch": 9}
    monkeypatch.setattr(study, "needed", lambda config, parameters, shape: config.batch.size)
    monkeypatch.setattr(facts, "memory", lambda: (2**40, enough_for["batch"]))
    monkeypatch.setattr(study, "within_free_memory", contextlib.nullcontext)
    words = ("--model", "roberta-base", "--lr", "1e-3,1e-4", *FEW)
    _, err, found = ran(course, "cross_model", *words)
    assert [run["batch_size"] for run in found["runs"]] == [8, 8]
    assert "batches of 32 do not fit into memory, trying 16." in err and err.count("trying 8") == 1

    enough_for["batch"] = 0
    out, _, found = ran(course, "cross_model", *words, "--output", "none")
    found = course.results("none")
    [run] = found["runs"]
    assert run["state"] == "does not fit" and "with batches of 32, 16, 8, 4, 2, 1" in run["reason"]
    assert "roberta-base: 0, it does not fit" in out and (course.folder / "none" / "cross_model.png").is_file()


@pytest.mark.slow
def test_t5_answers_with_words(course: CleanCopy) -> None:
    _, _, found = ran(course, "t5", "--lr", "1e-3", *FEW)
    assert [run["model"] for run in found["runs"]] == ["t5-small", "t5-base", "t5-large"]
    path = next((course.folder / "out" / "t5-small").glob("*/config.yaml")).parent
    assert read_config(path)["model"]["head"] == "words"
    assert all("test" in run for run in found["runs"])
