"""The scripts of an assignment as modules, which have everyday names in folders of their own; reviews for BERT's."""

from __future__ import annotations

import importlib
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.model import BertModel

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
