"""The scripts of an assignment: as modules, or run from a clean copy of their folder with tiny models and data."""

from __future__ import annotations

import importlib
import json
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.tiny_models import tiny_model

from attnlab.base import console
from attnlab.base.machine import facts
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
