"""The demo: the lab's main jobs in miniature, on data generated or shipped by the package.

(a) Knowledge. A small GPT reads about the people of a synthetic world, is fine-tuned on questions about half of
    them, and is asked about the others: it can only know the answer from pretraining. Baselines are the same model
    without pretraining, and the most common answer.
(b) Classification. A real pretrained encoder on the embedded sentiment set: all weights tuned, against the head only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.job import JobConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.jobs.subruns import run_subrun

SHAPE = {"preset": "modern", "layers": 3, "heads": 4, "width": 128, "context": 64}
WORLD = {"people": 300, "places": 60}


def pretraining(seed: int) -> PretrainConfig:
    return check(
        PretrainConfig,
        {
            "data": {"tokens": "words"},
            "world": WORLD,
            "model": SHAPE,
            "objective": {"name": "causal"},
            "optimizer": {"name": "muon", "lr": 2e-3, "matrix_lr": 0.02, "weight_decay": 0.01},
            "batch": {"size": 64},
            "training": {"epochs": 24, "seed": seed, "save_every": "6 epochs"},
        },
    )


def fine_tuning(pretrained: Path, fresh: bool, seed: int) -> FinetuneConfig:
    return check(
        FinetuneConfig,
        {
            "start": {"run": str(pretrained), "fresh": fresh},
            "optimizer": {"name": "muon", "lr": 5e-4, "matrix_lr": 0.005, "weight_decay": 0.01},
            "batch": {"size": 16},
            "training": {"epochs": 4, "seed": seed},
        },
    )


def classification(method: str, seed: int) -> ClassifyConfig:
    rate, epochs = (1e-4, 3) if method == "full" else (1e-2, 20)
    return check(
        ClassifyConfig,
        {
            "tuning": {"method": method},
            "optimizer": {"lr": rate},
            "batch": {"size": 16},
            "training": {"epochs": epochs, "seed": seed, "save_every": "0"},
        },
    )


@dataclass(frozen=True)
class DemoStep:
    """One run of the demo: its folder, its kind, and a function for its configuration."""

    name: str
    label: str
    kind: str
    config: Callable[[Path, int], JobConfig]


STEPS = (
    DemoStep("pretrained", "1/5 pretraining", "pretrain", lambda root, seed: pretraining(seed)),
    DemoStep(
        "asked",
        "2/5 fine-tuning, pretrained",
        "finetune",
        lambda root, seed: fine_tuning(root / "pretrained", False, seed),
    ),
    DemoStep(
        "asked-unread",
        "3/5 fine-tuning, not pretrained",
        "finetune",
        lambda root, seed: fine_tuning(root / "pretrained", True, seed),
    ),
    DemoStep("classified", "4/5 encoder, all weights", "classify", lambda root, seed: classification("full", seed)),
    DemoStep("classified-head", "5/5 encoder, head only", "classify", lambda root, seed: classification("head", seed)),
)


def run_demo(root: Path, seed: int) -> Path:
    """Run the five steps in folders below `root` and write the report; returns its path.

    Called again, it skips finished steps and resumes the interrupted one.
    """
    from attnlab.jobs.demo.page import write_demo_page

    command = f"attnlab demo --out {root} --resume"
    for step in STEPS:
        run_subrun(step.kind, step.config(root, seed), root / step.name, step.label, command)
    return write_demo_page(root)
