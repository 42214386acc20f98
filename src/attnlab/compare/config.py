"""What a comparison can be told. Free of torch: help must be quick."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import field_validator

from attnlab.config import (
    BatchSection,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    option,
    split_list,
)
from attnlab.jobs.configs import MeasuresSection, ShapeSection, StreamSection
from attnlab.jobs.several import ManyRuns, beside

DEFAULT_STEPS = 1000


class VariantsSection(ManyRuns):
    topic: ClassVar[str] = "What is compared"

    job: str = option("language", "What is run: language (a GPT on one text), knowledge, finetune, classify.")
    vary: dict[str, list[Any]] = option(
        {}, "Settings with the values to try, every one with every other: world.paraphrases=1,2,4; seed=..."
    )
    attention: str = option("vanilla", "Attention variants, separated by commas: names, or your own .py files.")
    positions: str = option(
        "preset", "Positions, separated by commas: none, learned, sinusoidal, rotary, alibi, preset (the preset's)."
    )
    changes: str = option(
        "", "The job as it is and with one change each, separated by commas: model.norm=layernorm, optimizer.lr=0.01"
    )
    seeds: int = option(3, "Runs of each variant, with the seeds 0, 1, ...; one gives no interval.", ge=1)

    @field_validator("changes", mode="before")
    @classmethod
    def _changes(cls, value: Any) -> str:
        parts = split_list(value)
        for part in parts:
            if "=" not in part:
                raise ValueError(f"{part!r} is no change: write 'norm=layernorm'")
        return ",".join(dict.fromkeys(parts))

    @field_validator("attention", "positions", mode="before")
    @classmethod
    def _names(cls, value: Any) -> str:
        parts = split_list(value)
        if not parts:
            raise ValueError("give at least one name")
        return ",".join(dict.fromkeys(parts))


class BudgetSection(Section):
    """The same for every run."""

    topic: ClassVar[str] = "Budget of each run"
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("steps", "seconds"),)

    steps: int | None = option(None, f"Steps of the optimizer (default: {DEFAULT_STEPS}).", ge=1)
    seconds: float | None = option(
        None, "Seconds of training instead: a variant's steps follow from its speed, measured once.", gt=0
    )
    evaluations: int = option(10, "Points of the validation curve; a checkpoint is written at each.", ge=1)
    log_every: int = option(10, "Steps between two lines of training metrics.", ge=1)


class CompareConfig(Section):
    """A comparison of language models on a stream: kinds of attention and positions at one budget."""

    compare: VariantsSection = VariantsSection()
    budget: BudgetSection = BudgetSection()
    data: StreamSection = StreamSection()
    model: ShapeSection = ShapeSection()
    optimizer: OptimizerSection = OptimizerSection()
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
    batch: BatchSection = BatchSection()
    measures: MeasuresSection = MeasuresSection()
    machine: MachineSection = MachineSection()


def comparison_of(job: str) -> type[Any]:
    """What a comparison of such jobs is told: what is compared, and the job's own settings."""
    if job == "language":
        return CompareConfig
    return beside(job, "compare", VariantsSection(job=job))
