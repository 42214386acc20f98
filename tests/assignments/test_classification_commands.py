"""The classification assignment: its command as printed, every experiment with tiny random models."""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.model import BertModel

pytest.importorskip("transformers")
FOLDER = Path(__file__).parents[2] / "assignments" / "training-transformer-language-models"
WIDTH = 16
PRINTED = """--experiment "overfit" --small_subset True --device cuda --model "distilbert-base-uncased"
--batch_size "64" --lr 1e-4 --num_epochs 20"""


@pytest.fixture(scope="module")
def course() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("classification")
    sys.path.remove(str(FOLDER))
    for name in ("classification", "experiments", "outcomes", "pictures"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    torch.manual_seed(0)
    tokenizer = WordPiece.learn([example.text for example in load_sentiment()["train"]], 300)
    tokenizer.save_pretrained(folder)
    BertModel(BertConfig(len(tokenizer), WIDTH, 1, 2, 32, 128, dropout=0.0)).save_pretrained(folder)
    return folder


@pytest.fixture
def run(course: ModuleType, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run an experiment; gives back what it printed and its results."""

    def go(experiment: str, *words: object) -> tuple[str, dict[str, Any]]:
        settings = ["--task", "sentiment", "--model", model, "--device", "cpu", "--output", tmp_path / "out"]
        course.main([str(word) for word in ("--experiment", experiment, *settings, *words)])
        return capsys.readouterr().out, json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))

    return go


def fails(course: ModuleType, capsys: pytest.CaptureFixture[str], *words: object) -> str:
    with pytest.raises(SystemExit) as ended:
        course.main([str(word) for word in words])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def test_the_printed_command_is_understood(course: ModuleType) -> None:
    args = course.make_parser().parse_args(shlex.split(PRINTED))
    assert (args.experiment, args.small_subset, args.batch_size) == ("overfit", True, 64)
    assert (args.lr, args.num_epochs, args.model) == ([1e-4], [20], ["distilbert-base-uncased"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_silent_cpu(course: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    said = fails(course, capsys, *shlex.split(PRINTED))
    assert "'cuda' does not exist on this machine" in said
    assert "--device auto" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--experiment", "overfitt"], "did you mean 'overfit'?"),
        (["--experiment", "overfit", "--small_subset", "maybe"], "True or False"),
        (["--experiment", "overfit", "--batch_size", "0"], "whole number from 1"),
        (["--experiment", "overfit", "--lr", "fast"], "list of numbers"),
        (["--experiment", "peft", "--type", "lora"], "choose from full, head, prefix"),
        (["--experiment", "overfit", "--task", "sentiment", "--small_subset", "False"], "full_training"),
        (["--experiment", "overfit", "--task", "sentiment", "--lr", "1e-3,1e-4"], "one value"),
        (["--experiment", "overfit", "--task", "nothing"], "neither a task nor a file"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(
    course: ModuleType,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in fails(course, capsys, *words)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_overfit_learns_ten_instances(run: Any, tmp_path: Path) -> None:
    printed, found = run("overfit", "--small_subset", "True", "--batch_size", "64", "--lr", "2e-2", "--num_epochs", 20)
    assert "random chance on sentiment: 50.0%" in printed
    assert f" - Average TRAIN metrics: accuracy={{'accuracy': {found['train_accuracy']}}}" in printed
    assert found["train_accuracy"] == 1.0
    assert (tmp_path / "out" / "overfit.png").stat().st_size > 5000


@pytest.mark.slow
def test_full_training_and_the_same_folder_again(
    run: Any, course: ModuleType, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--batch_size", "auto", "--num_epochs", 2, "--small_subset", "True")
    printed, found = run("full_training", *words)
    for split in ("dev", "test"):
        assert f" - Average {split.upper()} metrics: accuracy={{'accuracy': {found[f'{split}_accuracy']}}}" in printed
    before = (tmp_path / "out" / "run" / "metrics.jsonl").read_bytes()
    assert run("full_training", *words)[1] == found
    assert (tmp_path / "out" / "run" / "metrics.jsonl").read_bytes() == before, "a finished run is not run again"
    said = fails(
        course,
        capsys,
        "--experiment",
        "full_training",
        "--task",
        "sentiment",
        "--model",
        model,
        "--output",
        tmp_path / "out",
        *words,
        "--lr",
        "0.5",
    )
    assert "optimizer.lr" in said


@pytest.mark.slow
def test_the_best_of_a_grid_is_chosen_on_dev_and_tested_once(run: Any, tmp_path: Path) -> None:
    printed, found = run("parameter_tuning", "--lr", "1e-5,3e-2", "--num_epochs", "1,2", "--small_subset", "True")
    assert len(found["dev"]) == 4
    assert found["dev_accuracy"] == max(found["dev"].values())
    assert f"lr={found['lr']:g}, num_epochs={found['num_epochs']}" in found["dev"]
    assert " - Average TEST metrics:" in printed
    for cell in tmp_path.glob("out/tiny/*/run.json"):
        assert "test_accuracy" not in json.loads(cell.read_text(encoding="utf-8"))["results"]


def test_a_model_that_is_not_to_be_had_is_a_bar_at_zero(run: Any, model: Path, tmp_path: Path) -> None:
    """The last --model given counts."""
    nowhere = tmp_path / "nowhere"
    models = f"{model},{nowhere}"
    printed, found = run("cross_model", "--model", models, "--lr", "1e-3", "--num_epochs", 1, "--small_subset", "True")
    assert found[str(model)]["test_accuracy"] > 0
    assert found[str(nowhere)]["dev_accuracy"] == found[str(nowhere)]["test_accuracy"] == 0
    assert "nowhere" in found[str(nowhere)]["reason"]
    assert f"{nowhere}: 0, " in printed
    assert (tmp_path / "out" / "cross_model.png").is_file()


@pytest.mark.slow
def test_the_documents_numbers_of_tuned_parameters(run: Any) -> None:
    printed, found = run("peft", "--num_epochs", 1, "--small_subset", "True")
    assert found["head"]["tuned_parameters"] == 2 * WIDTH + 2
    assert found["prefix"]["tuned_parameters"] == 130 * WIDTH + 2
    assert f"= 2d + 2 with d = {WIDTH}" in printed
    assert f"= 130d + 2 with d = {WIDTH}" in printed


@pytest.mark.slow
def test_three_optimizers_in_one_figure(run: Any, tmp_path: Path) -> None:
    printed, found = run("optimizers", "--num_epochs", 1, "--small_subset", "True")
    assert list(found) == ["adamw", "sgd", "adagrad"]
    assert printed.count("Average DEV metrics") == 3
    assert (tmp_path / "out" / "optimizers.png").is_file()
