"""`Trainer(model, train_dataset, test_dataset, config).train()`: the course's names for the lab's training loop.

Training uses a run folder beside the parameters file, `NAME.params.run/`. After any stop, the same call resumes at
the folder's last checkpoint and ends with the same parameters, to the bit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from attnlab.base import console
from attnlab.base.console import clock
from attnlab.config import BatchSection, MachineSection, OptimizerSection, ScheduleSection, TrainingSection
from attnlab.config.job import JobConfig
from attnlab.data.batching import Batch, Batches, BatchPlan
from attnlab.jobs.engine import train_run
from attnlab.jobs.job import Parts, RunOptions
from attnlab.jobs.scripted import KIND, train_or_resume
from attnlab.runs import RunFolder, is_run
from attnlab.training.callbacks import TrainState
from attnlab.training.estimate import measure_speed
from attnlab.training.objectives import mean_loss
from attnlab.training.setup import resolve
from dataset import CharacterDataset
from model import GPT, PAD
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
    """Processes that build batches while the model learns from the ones before; 0: none, they are built in turn."""
    seed: int = 0
    device: str = "auto"
    optimizer: Literal["adamw", "muon"] = "adamw"
    matrix_rate: float = 0.02
    """Muon's learning rate for the matrices of the blocks; all else has `learning_rate`, with AdamW."""
    decay: Literal["wave", "wsd"] = "wave"
    """The course's cosine, or warm-up, a constant rate, and a fall over the second half."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "fp32"
    pieces: int = 8
    """A batch is computed in this many pieces of similar length, each cut after its longest example: the same step
    without the work on padding, which the loss ignores. 1: the course's way."""

    def job(self, examples: int, length: int) -> JobConfig:
        """The same as the lab's settings, for a number of examples of `length` positions."""
        return JobConfig(
            optimizer=OptimizerSection(
                name=self.optimizer,
                lr=self.learning_rate,
                matrix_lr=self.matrix_rate,
                beta1=self.betas[0],
                beta2=self.betas[1],
                clip=self.grad_norm_clip,
                weight_decay=self.weight_decay,
            ),
            schedule=self._schedule(examples, length),
            batch=BatchSection(size=self.batch_size, by_length=False, pieces=self.pieces, workers=self.num_workers),
            training=TrainingSection(epochs=self.max_epochs, seed=self.seed),
            machine=MachineSection(device=self.device, precision=self.precision),
        )

    def _schedule(self, examples: int, length: int) -> ScheduleSection:
        """The course counts every position, also padding, so its tokens are steps.

        The rate is a cosine from the peak to a tenth of it at `final_tokens`. In longer runs the cosine continues:
        in 650 epochs of pretraining the rate is high again after 400 and low again after 600.
        """
        if not self.lr_decay:
            return ScheduleSection(name="constant")
        if self.decay == "wsd":
            return ScheduleSection(name="wsd", warmup_ratio=0.04, decay_ratio=0.5, final=0.02)
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
        preset: str = "course",
        facts: dict[str, Any] | None = None,
        changes: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        self.model, self.train_dataset, self.test_dataset, self.config = model, train_dataset, test_dataset, config
        self.label, self.preset, self.facts, self.hint = label, preset, facts or {}, hint
        self.changes = list(changes)

    def train(self) -> Path:
        """Trains the model; returns the run folder."""
        path, job = self.config.ckpt_path, _Job(self)
        if path is None:
            run = train_run(job, RunOptions(label=self.label))
            assert run is not None  # it is not a dry run
            return run
        folder = run_folder(Path(path))
        job.resumed = is_run(folder)
        train_or_resume(job, folder, self.label)
        return folder


class _Job:
    """A training as the lab runs it."""

    kind = KIND

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.examples = Examples(trainer.train_dataset, trainer.config.seed)
        self.config = trainer.config.job(len(self.examples.lengths), trainer.train_dataset.block_size - 1)
        self.resumed = False

    def build(self, device: str) -> Parts:
        trainer, batch = self.trainer, self.config.batch
        model, test = trainer.model, trainer.test_dataset
        size = ", ".join(f"{name} {value}" for name, value in model.config.described().items())
        if device == "cpu" and not self.resumed:
            self._print_estimate()
        evaluate = None
        if test is not None:
            held = Examples(test, trainer.config.seed)
            evaluate = mean_loss(Batches(held, BatchPlan(held.lengths, int(batch.size or 1))), device, NextCharacter())
        return Parts(
            model,
            NextCharacter(),
            self.examples,
            evaluate,
            facts={"model": size, **trainer.facts},
            changes=trainer.changes,
            finish=self._finish,
        )

    def _finish(self, run: RunFolder, state: TrainState) -> dict[str, Any]:
        path = self.trainer.config.ckpt_path
        if path is not None:
            save_params(Path(path), self.trainer.model, self.trainer.train_dataset.itos, self.trainer.preset)
        return {}

    def _print_estimate(self) -> None:
        """How long all steps will take, from a few of them."""
        batch = self.config.batch
        plan = BatchPlan(self.examples.lengths, int(batch.size or 1), by_length=False)
        batches = Batches(self.examples, plan, pieces=batch.pieces)
        steps = batches.steps_in(0) * int(self.config.training.epochs or 1)
        config = self.config.model_copy(deep=True)
        config.machine.precision = "fp32" if config.machine.precision == "auto" else config.machine.precision
        config.machine = resolve(config.machine)
        speed = measure_speed(self.trainer.model, NextCharacter(), batches, config)
        time, hint = clock(speed.seconds_per_step * steps), f" {self.trainer.hint}" if self.trainer.hint else ""
        units = "hours:minutes:seconds" if time.count(":") == 2 else "minutes:seconds"
        console.say(
            f"{self.trainer.label}: {steps:,} steps will take about {time} on this CPU "
            f"({units}, measured on a few of them in {config.machine.precision}).{hint}"
        )


class NextCharacter:
    """The loss of the course: cross entropy of the next character where there is one."""

    def weight(self, batch: Batch) -> float:
        return float((batch.inputs["targets"] != PAD).sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        _, loss = model(batch.inputs["tokens"], batch.inputs["targets"])
        return loss


class Examples:
    """A dataset of pairs (x, y) as the lab batches it, cut after the longest example.

    A dataset may draw with `random`: the draws depend on the seed, the epoch and the example only, so that a run
    can be resumed anywhere.
    """

    def __init__(self, dataset: CharacterDataset, seed: int) -> None:
        self.dataset, self.seed = dataset, seed
        self.lengths = [dataset.block_size - 1] * len(dataset)

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        before = random.getstate()
        rows = []
        for index in indices:
            random.seed(f"{self.seed} {epoch} {index}")
            rows.append(self.dataset[index])
        random.setstate(before)
        tokens, targets = (torch.stack(part) for part in zip(*rows, strict=True))  # (B, T)
        # An example ends with its last target; what follows has no influence on the loss.
        ends = ((targets != PAD) * torch.arange(1, targets.shape[1] + 1)).amax(1)  # (B,)
        longest = int(ends.max())
        real = torch.arange(longest) < ends[:, None]
        return {"tokens": tokens[:, :longest], "targets": targets[:, :longest], "padding": real}


def run_folder(params: Path) -> Path:
    """The run folder of a parameters file."""
    return params.with_name(params.name + ".run")
