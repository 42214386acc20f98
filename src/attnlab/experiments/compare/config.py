"""What a comparison can be told. Free of torch: help must be quick."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import create_model, field_validator, model_validator

from attnlab.config import BatchSection, MachineSection, OptimizerSection, ScheduleSection, Section, option, split_list
from attnlab.config.gpt import ShapeSection
from attnlab.config.language import MeasuresSection, StreamSection
from attnlab.experiments.compare.choices import AXES as CHOICES
from attnlab.experiments.compare.choices import parse_choices, rated_optimizer
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
    arms: dict[str, dict[str, Any]] = option(
        {}, "Named sets of settings, separated by commas: alone, joint:joint.mlm=unlabeled.txt:lr=1e-4"
    )
    along_with: dict[str, dict[str, Any]] = option(
        {}, "Settings that go with one value alone, and fewer seeds where runs are dear: examples=50:epochs=12:seeds=5"
    )
    models: dict[str, dict[str, Any]] = option(
        {}, "Classifiers made of these pretrained models, separated by commas; settings of one alone: name:lr=1e-4"
    )
    methods: dict[str, dict[str, Any]] = option(
        {}, "Classifiers tuned in these ways: full, head, prompt, prefix, lora, ...; head:lr=1e-2:epochs=20"
    )
    optimizers: dict[str, dict[str, Any]] = option(
        {}, "Classifiers trained with these optimizers: adamw, sgd, adagrad, ...; sgd:lr=1e-2"
    )
    seeds: int = option(3, "Runs of each variant, with the seeds 0, 1, ...; one gives no interval.", ge=1)

    @field_validator("arms", "along_with", "models", "methods", "optimizers", mode="before")
    @classmethod
    def _choices(cls, value: Any) -> Any:
        return parse_choices(value)

    @field_validator("along_with")
    @classmethod
    def _seeds(cls, value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name, own in value.items():
            if "seeds" in own:
                own["seeds"] = _count(name, own["seeds"])
        return value

    @model_validator(mode="after")
    def _classifiers(self) -> VariantsSection:
        for name in CHOICES:
            if getattr(self, name) and self.job != "classify":
                raise ValueError(f"{name} are compared as classifiers: leave the job out, or write job: classify")
        return self

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


def _count(name: str, value: Any) -> int:
    try:
        count = int(value)
    except (TypeError, ValueError):
        count = 0
    if count < 1 or isinstance(value, float | bool):
        raise ValueError(f"seeds of {name!r} is a whole number above 0, not {value!r}")
    return count


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
    found = beside(job, "compare", VariantsSection(job=job))
    if job == "classify":  # what is tuned decides the rate, unless one is given
        optimizer = rated_optimizer()
        found = create_model(found.__name__, __base__=found, optimizer=(type(optimizer), optimizer))
    return found
