"""The kinds of runs by name. Their modules load torch, so they are imported when first used."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from attnlab.jobs.engine import RunOptions


@dataclass(frozen=True)
class Kind:
    """Where a job and its configuration are found."""

    module: str
    stem: str
    help: str

    def job(self) -> Any:
        return getattr(importlib.import_module(self.module), f"{self.stem}Job")


KINDS = {
    "knowledge": Kind("attnlab.jobs.knowledge", "Knowledge", "Pretrain, fine-tune on questions, and score: one run."),
    "pretrain": Kind("attnlab.jobs.pretrain", "Pretrain", "Pretrain a GPT or a BERT on a corpus or a synthetic world."),
    "finetune": Kind("attnlab.jobs.finetune", "Finetune", "Fine-tune a GPT on questions and answers."),
    "language": Kind("attnlab.jobs.language", "Language", "Train a GPT on a text read as one stream."),
    "classify": Kind("attnlab.jobs.classify.job", "Classify", "Fine-tune a pretrained encoder to classify texts."),
}


def config_of(kind: str) -> Any:
    """The configuration class of a kind; free of torch, so that help and completion are quick."""
    from attnlab.jobs import configs

    return getattr(configs, f"{KINDS[kind].stem}Config")


def run_kind(kind: str, config: Any, options: RunOptions) -> Path | None:
    """Run a job; a chain of several runs knows itself how."""
    from attnlab.jobs.engine import run_job

    job = KINDS[kind].job()(config)
    path: Path | None = job.run(options) if hasattr(job, "run") else run_job(job, options)
    return path
