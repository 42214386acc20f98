"""Two small pretrained and fine-tuned runs: one on a world, one on a user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from attnlab.config import check
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.world.files import write_world
from attnlab.data.world.world import World, WorldSpec
from attnlab.jobs.engine import train_run
from attnlab.jobs.finetune import FinetuneJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.pretrain import PretrainJob

PLAIN = {
    "machine": {"device": "cpu", "precision": "fp32", "threads": 1},
    "optimizer": {"lr": 3e-3},
    "batch": {"size": 16},
}
SHAPE = {"layers": 1, "heads": 2, "width": 32, "context": 64}


class Own(NamedTuple):
    """A user's files and the runs made of them."""

    files: Path
    pretrained: Path
    asked: Path


def train(root: Path, pretraining: dict[str, Any], tuning: dict[str, Any]) -> Path:
    first = check(PretrainConfig, PLAIN | {"training": {"steps": 30}, "objective": {"name": "causal"}} | pretraining)
    train_run(PretrainJob(first), RunOptions(root / "pretrained"))
    start = {"run": str(root / "pretrained")}
    second = check(FinetuneConfig, PLAIN | {"start": start, "training": {"epochs": 6}} | tuning)
    train_run(FinetuneJob(second), RunOptions(root / "asked"))
    return root / "asked"


@pytest.fixture(scope="session")
def world_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rotary positions, words."""
    world = {"people": 40, "places": 5}
    shape = SHAPE | {"preset": "modern"}
    return train(tmp_path_factory.mktemp("world"), {"world": world, "data": {"tokens": "words"}, "model": shape}, {})


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Own:
    """Another kind of attention, characters, and a corpus with a blank line in it."""
    root = tmp_path_factory.mktemp("own")
    files = root / "files"
    write_world(World(WorldSpec(people=32, places=4, documents=1, paraphrases=1, sentences=1, seed=5)), files)
    corpus = files / "corpus.txt"
    corpus.write_text("\n" + corpus.read_text(encoding="utf-8"), encoding="utf-8")
    data = {split: str(files / f"{split}.tsv") for split in ("train", "dev", "test")}
    shape = SHAPE | {"attention": "linear", "context": 128}
    asked = train(root, {"data": {"corpus": str(corpus)}, "model": shape}, {"data": data})
    return Own(files, root / "pretrained", asked)
