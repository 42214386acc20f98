"""Settings of `attnlab finetune`."""

from __future__ import annotations

from typing import ClassVar, Literal

from attnlab.config.gpt import GPTSection
from attnlab.config.job import JobConfig
from attnlab.config.sections import FilePath, OptimizerSection, ScheduleSection, Section, option
from attnlab.config.world import WorldSection


class PairsSection(Section):
    topic: ClassVar[str] = "Data"

    train: FilePath = option(None, "Questions and answers, tab-separated; without it, those of the synthetic world.")
    dev: FilePath = option(None, "Questions and answers that decide which weights are best.")
    test: FilePath = option(None, "Questions and answers to score once, at the end.")
    corpus: FilePath = option(None, "Text whose characters or words the vocabulary must contain (without --from).")
    tokens: Literal["characters", "words"] = option("characters", "What a token is (without --from).")


class StartSection(Section):
    topic: ClassVar[str] = "Start"

    run: FilePath = option(None, "A pretrained run: its weights, vocabulary and shape.", "--from")
    fresh: bool = option(False, "Use the vocabulary and shape of --from with new weights: no pretraining.")


class FinetuneConfig(JobConfig):
    default_epochs: ClassVar[int | None] = 10

    start: StartSection = StartSection()
    data: PairsSection = PairsSection()
    world: WorldSection = WorldSection()
    model: GPTSection = GPTSection()
    optimizer: OptimizerSection = OptimizerSection(lr=6e-4)
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
