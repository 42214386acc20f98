"""What a comparison can be told. Free of torch: help must be quick."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import create_model, field_validator

from attnlab.config import (
    BatchSection,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    option,
    split_list,
)
from attnlab.errors import unknown
from attnlab.jobs.configs import MeasuresSection, ShapeSection, StreamSection
from attnlab.jobs.kinds import KINDS, config_of

DEFAULT_STEPS = 1000


def comparable() -> list[str]:
    """The kinds of jobs that say by what their runs are judged."""
    return [kind for kind in KINDS if config_of(kind).headlines]


def _dotted(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{world: {paraphrases: [...]}} is {world.paraphrases: [...]}."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _dotted(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + str(name): value}
    return found


class VariantsSection(Section):
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

    @field_validator("job")
    @classmethod
    def _job(cls, value: str) -> str:
        if value not in comparable():
            raise ValueError(unknown("job", value, comparable()))
        return value

    @field_validator("vary", mode="before")
    @classmethod
    def _axes(cls, value: Any) -> Any:
        """{setting: [values]}, or the same on a command line: 'setting=1,2,4; other=a,b'."""
        if isinstance(value, str):
            parts = [part.partition("=") for part in value.split(";") if part.strip()]
            value = {name.strip(): values if equals else "" for name, equals, values in parts}
        if not isinstance(value, dict):
            raise ValueError("write 'setting: [1, 2, 4]', or --vary setting=1,2,4")
        axes = {str(name): values if isinstance(values, list) else split_list(values)
                for name, values in _dotted(value).items()}  # fmt: skip
        for name, values in axes.items():
            if len({str(each) for each in values}) != len(values) or not values:
                raise ValueError(f"{name!r} needs different values to try, such as {name}=1,2,4")
        return axes

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
    fields: dict[str, Any] = {name: (field.annotation, field) for name, field in config_of(job).model_fields.items()}
    name = f"Compare{KINDS[job].stem}Config"
    return create_model(name, __base__=Section, compare=(VariantsSection, VariantsSection(job=job)), **fields)
