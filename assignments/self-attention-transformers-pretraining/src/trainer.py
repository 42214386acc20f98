"""`Trainer(model, train_dataset, test_dataset, config).train()`: the course's names for the lab's training.

Training uses a run folder beside the parameters file, `NAME.params.run/`. After any stop, the same call resumes at
the folder's last checkpoint and ends with the same parameters, to the bit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnlab.base import console
from attnlab.base.console import clock
from attnlab.config import BatchSection, MachineSection, OptimizerSection, ScheduleSection, TrainingSection
from attnlab.config.job import JobConfig
from attnlab.data.batching import IGNORE, Batches, BatchPlan
from attnlab.jobs.engine import train_run
from attnlab.jobs.job import Parts, RunOptions
from attnlab.jobs.scripted import KIND, train_or_resume
from attnlab.runs import RunFolder, is_run
from attnlab.training.callbacks import TrainState
from attnlab.training.estimate import estimate
from attnlab.training.objectives import NextToken, mean_loss
from dataset import CharacterDataset
from model import GPT
from params import save_params


@dataclass(frozen=True)
class TrainerConfig:
    """The settings of a training, with the course's names and defaults."""

    max_epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.95)
    grad_norm_clip: float = 1.0
    weight_decay: float = 0.1
    lr_decay: bool = False
    warmup_tokens: float = 375e6
    final_tokens: float = 260e9
    ckpt_path: str | Path | None = None
    """The parameters file; without one, the result is in a new folder in runs/ and in the model."""
    num_workers: int = 0
    """Accepted as in the course; batches are built in this process, which takes little time."""
    seed: int = 0
    device: str = "auto"

    def job(self, examples: int, length: int) -> JobConfig:
        """The same as the lab's settings, for a number of examples of `length` positions."""
        return JobConfig(
            optimizer=OptimizerSection(
                lr=self.learning_rate,
                beta1=self.betas[0],
                beta2=self.betas[1],
                clip=self.grad_norm_clip,
                weight_decay=self.weight_decay,
            ),
            schedule=self._schedule(examples, length),
            batch=BatchSection(size=self.batch_size, by_length=False),
            training=TrainingSection(epochs=self.max_epochs, seed=self.seed),
            machine=MachineSection(device=self.device, precision="fp32"),
        )

    def _schedule(self, examples: int, length: int) -> ScheduleSection:
        """The course counts every position, also padding, so its tokens are steps: all batches have one length.

        The rate is a cosine from the peak to a tenth of it at `final_tokens`. In longer runs the cosine continues:
        in 650 epochs of pretraining the rate is high again after 400 and low again after 600.
        """
        if not self.lr_decay:
            return ScheduleSection(name="constant")
        tokens_per_step = examples * length / -(-examples // self.batch_size)
        fall = max(1, round((self.final_tokens - self.warmup_tokens) / tokens_per_step))
        return ScheduleSection(
            name="wave", wave_steps=fall, warmup_steps=round(self.warmup_tokens / tokens_per_step), final=0.1
        )


class Trainer:
    """Trains a model. `facts` identify the data, so that a training is not resumed with others."""

    def __init__(
        self,
        model: GPT,
        train_dataset: CharacterDataset,
        test_dataset: CharacterDataset | None,
        config: TrainerConfig,
        *,
        label: str = "train",
        facts: dict[str, Any] | None = None,
        changes: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        self.model, self.train_dataset, self.test_dataset, self.config = model, train_dataset, test_dataset, config
        self.label, self.facts, self.hint = label, facts or {}, hint
        self.changes = list(changes)

    def train(self) -> None:
        path, job = self.config.ckpt_path, _Job(self)
        if path is None:
            train_run(job, RunOptions(label=self.label))
            return
        folder = run_folder(Path(path))
        if is_run(folder):
            job.hint = ""
        train_or_resume(job, folder, self.label)


class _Job:
    """A training as the lab runs it."""

    kind = KIND

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.examples = Examples(trainer.train_dataset, trainer.config.seed)
        self.config = trainer.config.job(len(self.examples.lengths), trainer.train_dataset.block_size - 1)
        self.hint = trainer.hint

    def build(self, device: str) -> Parts:
        trainer, batch = self.trainer, self.config.batch
        model, test = trainer.model, trainer.test_dataset
        size = ", ".join(f"{name} {value}" for name, value in model.config.described().items())
        if device == "cpu" and self.hint:
            self._print_estimate()
        evaluate = None
        if test is not None:
            held = Examples(test, trainer.config.seed)
            evaluate = mean_loss(Batches(held, BatchPlan(held.lengths, int(batch.size or 1))), device)
        return Parts(
            model.lab,
            NextToken(),
            self.examples,
            evaluate,
            facts={"model": size, **trainer.facts},
            changes=trainer.changes,
            finish=self._finish,
        )

    def _finish(self, run: RunFolder, state: TrainState) -> dict[str, Any]:
        path = self.trainer.config.ckpt_path
        if path is not None:
            save_params(Path(path), self.trainer.model, self.trainer.train_dataset.itos)
        return {}

    def _print_estimate(self) -> None:
        plan = BatchPlan(self.examples.lengths, int(self.config.batch.size or 1), by_length=False)
        batches = Batches(self.examples, plan)
        steps = batches.steps_in(0) * int(self.config.training.epochs or 1)
        cost = estimate(self.trainer.model.lab, NextToken(), batches, steps, "cpu")
        console.say(
            f"{self.trainer.label}: {steps:,} steps will take about {clock(cost.seconds)} on this CPU "
            f"(hours:minutes:seconds, measured on a few of them). {self.hint}"
        )


class Examples:
    """A dataset of pairs (x, y) as the lab batches it: cut after the longest example, PAD not a target.

    A dataset may draw with `random`: the draws depend on the seed, the epoch and the example only, so that a run
    can be resumed anywhere.
    """

    def __init__(self, dataset: CharacterDataset, seed: int) -> None:
        self.dataset, self.seed = dataset, seed
        self.lengths = [dataset.block_size - 1] * len(dataset)  # type: ignore[arg-type]

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        before = random.getstate()
        rows = []
        for index in indices:
            random.seed(f"{self.seed} {epoch} {index}")
            rows.append(self.dataset[index])
        random.setstate(before)
        tokens, targets = (torch.stack(part) for part in zip(*rows, strict=True))  # (B, T)
        pad = self.dataset.stoi[self.dataset.PAD_CHAR]
        longest = int((tokens != pad).sum(1).max())
        tokens, targets = tokens[:, :longest], targets[:, :longest]
        return {"tokens": tokens, "targets": targets.masked_fill(targets == pad, IGNORE), "padding": tokens != pad}


def run_folder(params: Path) -> Path:
    """The run folder of a parameters file."""
    return params.with_name(params.name + ".run")
