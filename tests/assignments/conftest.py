"""The scripts of an assignment: as modules, or run from a clean copy of their folder; tiny models and data for them."""

from __future__ import annotations

import importlib
import json
import random
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from tests.tiny_models import tiny_model

from attnlab.base import console
from attnlab.base.machine import facts
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.model import BertModel
from attnlab.report import page

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
Load = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def knowledge() -> Iterator[Load]:
    """`knowledge("dataset")` is src/dataset.py."""
    yield from _scripts(ASSIGNMENTS / "self-attention-transformers-pretraining" / "src")


@pytest.fixture(scope="module")
def bert() -> Iterator[Load]:
    """`bert("classifier")` is its classifier.py."""
    yield from _scripts(ASSIGNMENTS / "natural-language-processing-4")


def _scripts(folder: Path) -> Iterator[Load]:
    names = [path.stem for path in folder.glob("*.py")]

    def forget() -> None:
        for name in names:  # another assignment may have a model.py too, and the benchmarks an attention.py
            sys.modules.pop(name, None)

    forget()
    sys.path.insert(0, str(folder))
    yield importlib.import_module
    sys.path.remove(str(folder))
    forget()


HUB = {
    "distilbert-base-uncased": "distilbert",
    "bert-base-cased": "bert",
    "bert-base-uncased": "bert",
    "bert-large-uncased": "bert",
    "bert-large-cased": "bert",
    "roberta-base": "roberta",
    "roberta-large": "roberta",
    "t5-small": "t5",
    "t5-base": "t5",
    "t5-large": "t5",
}


@pytest.fixture(scope="session")
def hub_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ATTNLAB_MODELS: the documents' models by name, with random weights and a width of 16."""
    folder = tmp_path_factory.mktemp("models")
    for name, family in HUB.items():
        tiny_model(folder / name, family)
    return folder


@pytest.fixture(scope="session")
def tiny_boolq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ATTNLAB_DATA: questions whose passage gives the answer away."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "boolq").mkdir()
    for name, count in (("train", 48), ("dev", 12)):
        rows = [
            {"question": f"{name} {n}", "passage": ("a bad plot", "the film is good")[n % 2], "answer": n % 2 > 0}
            for n in range(count)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "boolq" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@dataclass
class CleanCopy:
    """A copy of an assignment's folder, the current folder of its commands."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def run(self, script: str, *words: object) -> tuple[int, str, str]:
        """`python SCRIPT WORDS...` in this process: its exit code, output and messages."""
        self.monkeypatch.setattr(sys, "argv", [script, *map(str, words)])
        for path in self.folder.glob("*.py"):
            sys.modules.pop(path.stem, None)
        code: Any = 0
        try:
            runpy.run_path(str(self.folder / script), run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
        return code, *self.capsys.readouterr()

    def results(self, output: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / output / "results.json").read_text(encoding="utf-8"))
        return content


@pytest.fixture
def clean_copy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    hub_models: Path,
    tiny_boolq: Path,
) -> Callable[[str], CleanCopy]:
    """`clean_copy("adapting-transformers")`, with nothing but the lab beside it."""

    def copy(name: str) -> CleanCopy:
        folder = tmp_path / "course"
        shutil.copytree(ASSIGNMENTS / name, folder, ignore=shutil.ignore_patterns("runs", "__pycache__"))
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setenv("ATTNLAB_DATA", str(tiny_boolq))
        monkeypatch.setenv("ATTNLAB_MODELS", str(hub_models))
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setattr(console, "_verbosity", console.Verbosity.NORMAL)
        monkeypatch.setattr(page, "write_run_page", lambda *_: None)  # seconds per run, and the same for all commands
        monkeypatch.setattr(facts, "cores", lambda: 1)  # tests run side by side, and two threads wait for each other
        return CleanCopy(folder, capsys, monkeypatch)

    return copy


STARS = ("awful", "poor", "decent", "good", "superb")


def review(stars: int, draw: random.Random) -> str:
    return f"the {draw.choice(('food', 'room', 'staff'))} was {STARS[stars - 1]}\\nand so was the {draw.choice('abc')}"


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled reviews, unlabelled ones, and a small random BERT under the name of the document's, saved by the lab."""
    folder, draw = tmp_path_factory.mktemp("assignment"), random.Random(0)
    (folder / "yelp_small").mkdir()
    for name, count in (("train", 60), ("valid", 20), ("test", 15)):
        rows = [f'"{n % 5 + 1}","{review(n % 5 + 1, draw)}"\n' for n in range(count)]
        (folder / "yelp_small" / f"{name}.csv").write_text("".join(rows))
    lines = [review(draw.randint(1, 5), draw) for _ in range(90)]
    (folder / "unlabeled_train_50000.txt").write_text("\n".join(lines) + "\n")
    model = folder / "models" / "TinyBERT_General_4L_312D"
    tokenizer = WordPiece.learn([line.replace("\\n", "\n") for line in lines], 120)
    tokenizer.save_pretrained(model)
    torch.manual_seed(0)
    BertModel(BertConfig(len(tokenizer), 32, 1, 2, 64, 256)).save_pretrained(model)
    return folder


@pytest.fixture
def place(tmp_path: Path, reviews: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these to work in."""
    shutil.copytree(reviews, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTNLAB_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path
