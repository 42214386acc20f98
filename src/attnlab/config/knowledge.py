"""Settings of `attnlab knowledge`: pretraining, fine-tuning, and what they share."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from attnlab.config.gpt import GPTSection
from attnlab.config.pretrain import MASKED_WORDS, CorpusSection, ObjectiveSection
from attnlab.config.sections import (
    BatchSection,
    FilePath,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    StepsSection,
    option,
)
from attnlab.config.world import WorldSection


class ChainDataSection(CorpusSection):
    common: ClassVar[tuple[str, ...] | None] = ("corpus", "tokens", "train", "dev", "test")

    train: FilePath = option(None, "Questions and answers, tab-separated; without it, those of the synthetic world.")
    dev: FilePath = option(None, "Questions and answers that decide which weights are best.")
    test: FilePath = option(None, "Questions and answers to score once, at the end.")


class PretrainPart(Section):
    """Settings of pretraining alone."""

    objective: ObjectiveSection = ObjectiveSection()
    optimizer: OptimizerSection = OptimizerSection(lr=1e-3)
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
    batch: BatchSection = BatchSection()
    training: StepsSection = StepsSection()

    @field_validator("objective")
    @classmethod
    def _answers_questions(cls, objective: ObjectiveSection) -> ObjectiveSection:
        if objective.masked:
            raise ValueError(f"{MASKED_WORDS} pretrains a BERT, which cannot answer questions: use 'attnlab pretrain'")
        return objective


class FinetunePart(Section):
    """Settings of fine-tuning alone."""

    optimizer: OptimizerSection = OptimizerSection(lr=6e-4)
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
    batch: BatchSection = BatchSection()
    training: StepsSection = StepsSection()


class KnowledgeConfig(Section):
    """Pretraining, fine-tuning, and what they share."""

    topic: ClassVar[str] = "Chain"

    seed: int = option(0, "Seed of the weights and of the order of the data, in both halves.", ge=0)
    control: bool = option(False, "Also fine-tune without pretraining, for comparison.")
    data: ChainDataSection = ChainDataSection()
    world: WorldSection = WorldSection()
    model: GPTSection = GPTSection()
    pretrain: PretrainPart = PretrainPart()
    finetune: FinetunePart = FinetunePart()
    machine: MachineSection = MachineSection()
