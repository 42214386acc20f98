"""Small files and runs that every command accepts: what malformed inputs are made from."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.check.conftest import HEADER, RIGHT
from tests.tiny_models import tiny_model

Run = Callable[[list[str]], None]
"""Runs one command and raises if it fails."""
MACHINE = ["--device", "cpu", "--precision", "fp32"]
TINY = ["--layers", "1", "--heads", "2", "--width", "16", "--context", "32"]
CORPUS = "corpus.txt"
RECIPES = {
    "pretrain": "model: {layers: 1, heads: 2, width: 16, context: 32}\ndata:\n  corpus: corpus.txt\n  tokens: words\n"
    "training:\n  steps: 2\noptimizer:\n  lr: 1e-3\n  betas: [0.9, 0.95]\n",
    "language": "data:\n  corpus: corpus.txt\nmodel: &small\n  layers: 1\n  heads: 2\n  width: 16\n  context: 16\n"
    "training: {steps: 2, batch_size: 4}\n",
    "classify": "data:\n  task: labelled.tsv\nmodel:\n  name: bert\ntuning: {method: lora, rank: 2}\n"
    "training:\n  epochs: 1\n",
    "knowledge": "world: {people: 12, places: 4}\npretrain:\n  optimizer: {lr: 0.001}\n  training: {steps: 2}\n"
    "finetune:\n  training:\n    epochs: 1\n",
    "compare": "compare:\n  job: language\n  attention: [vanilla, linear]\n  seeds: 1\nbudget: {steps: 2}\n",
    "sweep": "sweep:\n  job: language\n  vary:\n    optimizer.lr: [1e-3, 1e-2]\n  trials: 2\n",
}
MIXER = """from torch import nn

class Mine(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(shape.width, shape.width)

    def forward(self, x, padding):
        return self.out(x)
"""


def write_good_files(folder: Path, run: Run) -> None:
    """Texts, tables, arrays, recipes, code, a model, and tiny runs of three kinds, an export and an evaluation."""
    draw = random.Random(0)
    _write_texts(folder, draw)
    _write_arrays(folder)
    for kind, recipe in RECIPES.items():
        (folder / f"{kind}.yaml").write_text(recipe, encoding="utf-8")
    (folder / "mixer.py").write_text(MIXER, encoding="utf-8")
    _write_pieces(folder)
    tiny_model(folder / "bert", masked=True)
    small = [*TINY, *MACHINE, "--steps", "2"]
    run(["pretrain", "--corpus", CORPUS, "--tokens", "words", *small, "--run", "read"])
    questions = ["--train", "questions.tsv", "--dev", "questions.tsv"]
    run(["finetune", "--from", "read", *questions, "--epochs", "1", *MACHINE, "--run", "asked"])
    labelled = ["--task", "labelled.tsv", "--model", "bert"]
    plain = ["--pooling", "pooler", "--head", "linear"]  # what transformers' own classifier has
    run(["classify", *labelled, *plain, "--epochs", "1", *MACHINE, "--run", "sorted"])
    run(["export", "sorted", "--to", "exported"])
    run(["export", "sorted", "--to", "weights", "--weights-only"])


def _write_texts(folder: Path, draw: random.Random) -> None:
    names = [f"{first} {last}" for first in ("Ada", "Alan", "Emmy", "Kurt") for last in ("Moss", "Hill", "Lake")]
    pairs = [(f"Where was {name} born?", draw.choice(["Rome", "Paris", "Oslo"])) for name in names]
    (folder / "questions.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in pairs), encoding="utf-8")
    (folder / "questions.txt").write_text("".join(f"{q}\n" for q, _ in pairs), encoding="utf-8")
    told = [
        f"{name} was born in {place}. Where was {name} born?" for name, (_, place) in zip(names, pairs, strict=True)
    ]
    (folder / CORPUS).write_text("\n".join(told * 3) + "\n", encoding="utf-8")
    words = ["good", "bad", "film", "plot", "the", "very", "not", "actors"]
    rows = [{"text": " ".join(draw.choices(words, k=6)), "label": draw.choice(["yes", "no"])} for _ in range(40)]
    (folder / "labelled.tsv").write_text(_separated(rows, "\t"), encoding="utf-8")
    (folder / "labelled.csv").write_text(_separated(rows, ","), encoding="utf-8")
    (folder / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "labelled.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "labelled.txt").write_text("".join(f"{row['text']}\n" for row in rows), encoding="utf-8")
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "labelled.parquet")


def _separated(rows: list[dict[str, str]], separator: str) -> str:
    return "".join(
        f"{line}\n" for line in (separator.join(row) for row in [["text", "label"], *map(dict.values, rows)])
    )


def _write_arrays(folder: Path) -> None:
    keys = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.5], [0.3, 0.3, 2.0]])
    np.save(folder / "keys.npy", keys)
    (folder / "keys.json").write_text(json.dumps(keys.tolist()), encoding="utf-8")
    (folder / "keys.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in keys), encoding="utf-8")
    (folder / "keys.csv").write_text("".join(", ".join(map(str, row)) + "\n" for row in keys), encoding="utf-8")
    (folder / "query.json").write_text("[[1, 0, 2]]", encoding="utf-8")


def _write_pieces(folder: Path) -> None:
    import textwrap

    text = HEADER + "".join(map(textwrap.dedent, RIGHT.values()))
    (folder / "pieces.py").write_text(text, encoding="utf-8")
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": part.splitlines(True)} for part in (text,)]
    cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": ["# attention"]})
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "pieces.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
