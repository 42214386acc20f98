"""The settings that all training commands share; each adds its own sections."""

from __future__ import annotations

from typing import ClassVar

from attnlab.config.sections import (
    BatchSection,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    TrainingSection,
)


class JobConfig(Section):
    """The settings that all training commands share; each adds its own sections."""

    default_epochs: ClassVar[int | None] = 10
    listed_last: ClassVar[tuple[str, ...]] = ("optimizer", "schedule", "batch", "training", "machine")

    optimizer: OptimizerSection = OptimizerSection()
    schedule: ScheduleSection = ScheduleSection()
    batch: BatchSection = BatchSection()
    training: TrainingSection = TrainingSection()
    machine: MachineSection = MachineSection()
