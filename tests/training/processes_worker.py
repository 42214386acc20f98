"""One of several processes: the runs whose results must be those of one process. Started by test_processes.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.config.knowledge import KnowledgeConfig
from attnlab.config.language import LanguageConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import KINDS

LINES = ["the film is good", "a bad plot", "not very good", "the actors was bad and the film is not good"] * 8
MACHINE = {"device": "cpu", "precision": "fp32", "threads": 1}
TRAINING = {"steps": 6, "log_every": 1, "save_every": "0", "seed": 3}
GPT = {"preset": "vanilla", "layers": 2, "heads": 2, "width": 16, "context": 48, "dropout": 0.0}
WORLD = {"people": 24, "places": 8}


def write_data(folder: Path) -> None:
    rows = [f"{text}\t{('no', 'yes')[n % 2]}" for n, text in enumerate(LINES[:9])]
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
        rows = rows[::2]
    (folder / "texts.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")


def configs(folder: Path, sharded: bool) -> dict[str, tuple[str, Any]]:
    """By name, the kind and the configuration. Batches do not divide evenly, and the last ones are of 1 example."""
    data = {"task": str(folder / "train.tsv"), "dev": str(folder / "dev.tsv"), "hold_out": False}
    texts = str(folder / "texts.txt")
    common = {"machine": MACHINE, "training": TRAINING, "optimizer": {"lr": 1e-3}}
    classify: dict[str, Any] = {
        **common,
        "data": data,
        "batch": {"size": 4},
        "training": {**TRAINING, "evaluate_every": "3 steps", "keep": 2},
        "model": {"name": str(folder / "bert"), "dropout": 0.0},
    }
    pretrain: dict[str, Any] = {
        **common,
        "world": WORLD,
        "model": GPT,
        "data": {"tokens": "words", "dev_share": 0.2},
        "training": {**TRAINING, "evaluate_every": "3 steps"},
        "batch": {"size": 7, "accumulate": 2},
    }
    sharding = {"sharding": "fsdp"} if sharded else {}
    joint = {"mlm": texts, "weight": 0.5, "schedule": "up"}
    half = {"training": {"steps": 2, "log_every": 1}, "batch": {"size": 5}}
    return {
        "spans": ("pretrain", check(PretrainConfig, {**pretrain, "optimizer": {"name": "muon"}})),
        "masked": (
            "pretrain",
            check(
                PretrainConfig,
                {
                    **pretrain,
                    "objective": {"name": "mlm"},
                    "masking": {"vocabulary": 60},
                    "world": {},
                    "data": {"corpus": texts, "dev_share": 0.2},
                    "model": {name: GPT[name] for name in GPT if name != "preset"},
                },
            ),
        ),
        "cut-up": ("pretrain", check(PretrainConfig, {**pretrain, "machine": {**MACHINE, **sharding}})),
        "cut-up-joint": (
            "classify",
            check(ClassifyConfig, {**classify, "joint": joint, "machine": {**MACHINE, **sharding}}),
        ),
        "classes": ("classify", check(ClassifyConfig, classify)),
        "lora": ("classify", check(ClassifyConfig, {**classify, "tuning": {"method": "lora"}})),
        "joint": ("classify", check(ClassifyConfig, {**classify, "joint": joint})),
        "language": (
            "language",
            check(
                LanguageConfig,
                {
                    **common,
                    "data": {"corpus": texts},
                    "model": {**GPT, "context": 16},
                    "batch": {"size": 3},
                    "measures": {"prefix_blocks": 0},
                },
            ),
        ),
        "chain": (
            "knowledge",
            check(
                KnowledgeConfig,
                {
                    "machine": MACHINE,
                    "world": WORLD,
                    "model": GPT,
                    "data": {"tokens": "words"},
                    "pretrain": half,
                    "finetune": half,
                },
            ),
        ),
    }


def run_all(folder: Path, out: Path, sharded: bool) -> None:
    with patch("attnlab.report.page.write_run_page"):  # figures take longer than the training
        for name, (kind, config) in configs(folder, sharded).items():
            KINDS[kind].job()(config).run(RunOptions(out / name))


def main(folder: Path, out: Path) -> None:
    from attnlab.distributed.team import joined

    with joined("cpu") as team:
        assert team.count == 2
        run_all(folder, out, sharded=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
