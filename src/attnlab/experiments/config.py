"""The settings of a comparison and of a sweep. Does not import torch or Optuna, so --help is fast.

Both run one job many times: their configuration is the job's own, with a section that defines what varies.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import create_model, field_validator, model_validator

from attnlab.base.errors import UserError, unknown
from attnlab.config.axes import parse_axes, parse_choices
from attnlab.config.gpt import ShapeSection
from attnlab.config.language import BudgetSection, MeasuresSection, StreamSection
from attnlab.config.recipe import Key, leaves, read_recipe, value_of
from attnlab.config.sections import (
    BatchSection,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    option,
    split_list,
)
from attnlab.experiments.addresses import JOURNAL, store_address
from attnlab.jobs.registry import KINDS, measured

DEFAULT_TRIALS = 20
CLASSIFIER_AXES = {"models": ("model", "name"), "methods": ("tuning", "method"), "optimizers": ("optimizer", "name")}
"""The lists of choices that only a comparison of classifiers has, and the setting each is about."""


class ExperimentSection(Section):
    """Which job is run many times, which of its settings vary, and with how many seeds."""

    job: str
    vary: dict[str, list[Any]] = option({}, "Settings with the values to try.")
    seeds: int = option(1, "Runs of each, with the seeds 0, 1, ...", ge=1)
    baselines: bool | None = option(
        None,
        "Of classifiers: put the most common class, TF-IDF and the frozen encoder, with logistic regression, beside "
        "them (default: yes; off: --no-baselines).",
    )

    def decide_baselines(self) -> None:
        """A new experiment has them unless they are switched off; one of an earlier version has none."""
        if self.baselines is None and self.job == "classify":
            self.baselines = True

    @model_validator(mode="after")
    def _of_classifiers(self) -> ExperimentSection:
        if self.baselines and self.job != "classify":
            raise ValueError(f"baselines are for classifiers, and these are runs of {self.job!r}: leave them out")
        return self

    @field_validator("job")
    @classmethod
    def _job(cls, value: str) -> str:
        if value not in measured():
            raise ValueError(unknown("job", value, measured()))
        return value

    @field_validator("vary", mode="before")
    @classmethod
    def _axes(cls, value: Any) -> Any:
        return parse_axes(value)


class CompareSection(ExperimentSection):
    topic: ClassVar[str] = "What is compared"
    common: ClassVar[tuple[str, ...] | None] = (
        *("job", "vary", "attention", "positions", "models", "methods", "optimizers", "seeds"),
    )

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
        {}, "Settings of one value alone, and fewer seeds where runs are expensive: examples=50:epochs=12:seeds=5"
    )
    models: dict[str, dict[str, Any]] = option(
        {}, "Classifiers built on these pretrained models, separated by commas; settings of one alone: name:lr=1e-4"
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
        for name, settings in value.items():
            if "seeds" in settings:
                settings["seeds"] = _count(name, settings["seeds"])
        return value

    @model_validator(mode="after")
    def _classifiers(self) -> CompareSection:
        for name in CLASSIFIER_AXES:
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
        raise ValueError(f"seeds of {name!r}: expected a whole number above 0, got {value!r}")
    return count


class SweepSection(ExperimentSection):
    topic: ClassVar[str] = "What is searched"
    common: ClassVar[tuple[str, ...] | None] = ("job", "vary", "search", "trials", "prune", "seeds")

    job: str = option("classify", "What is run: classify, finetune, language, knowledge.")
    vary: dict[str, list[Any]] = option(
        {},
        "Settings with values (optimizer.lr=1e-4,1e-3; tuning.method=full,head) or, not for a grid, a range "
        "(training.epochs=2..10; optimizer.lr=1e-5..1e-3 log).",
    )
    search: Literal["grid", "random", "guided"] = option(
        "grid", "grid (every value with every other), random, or guided (Optuna's TPE, by the scores so far)."
    )
    trials: int | None = option(
        None, f"How many settings random and guided try (default: {DEFAULT_TRIALS}, or what --seconds allow).", ge=1
    )
    seconds: float | None = option(None, "Start nothing new after so many seconds; what runs is finished.", gt=0)
    prune: Literal["median", "halving", "none"] = option(
        "none", "End poor runs early: median (worse than half of the others so far), halving (successive)."
    )
    seeds: int = option(1, "Runs of each, with the seeds 0, 1, ...; the choice is by their mean on dev.", ge=1)
    search_seed: int = option(0, "Seed of random and guided.", ge=0)
    store: str = option(
        JOURNAL, "Where trials are kept: journal (a file in the folder), sqlite:///file.db, postgresql://user@host/db."
    )

    @field_validator("store")
    @classmethod
    def _store(cls, value: str) -> str:
        return store_address(value)


class CompareConfig(Section):
    """A comparison of any job."""

    compare: CompareSection = CompareSection()


class SweepConfig(Section):
    """A sweep over any job."""

    sweep: SweepSection = SweepSection()


class SweepFlags(SweepConfig):
    """The flags of `attnlab sweep`; everything else is a setting of the job, given by name."""

    machine: MachineSection = MachineSection()


class LanguageComparison(CompareConfig):
    """A comparison of language models on one text: kinds of attention and positions at one budget."""

    budget: BudgetSection = BudgetSection()
    data: StreamSection = StreamSection()
    model: ShapeSection = ShapeSection()
    optimizer: OptimizerSection = OptimizerSection()
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
    batch: BatchSection = BatchSection()
    measures: MeasuresSection = MeasuresSection()
    machine: MachineSection = MachineSection()


E = TypeVar("E", bound=Section)


def _beside_job(base: type[E], name: str, section: ExperimentSection) -> type[E]:
    """The settings of a job with the experiment's section beside them."""
    fields: dict[str, Any] = {
        field_name: (field.annotation, field) for field_name, field in KINDS[section.job].config.model_fields.items()
    }
    fields[name] = (type(section), section)
    return create_model(f"{base.__name__}Of{section.job.capitalize()}", __base__=base, **fields)


def comparison_of(job: str) -> type[CompareConfig]:
    """The configuration of a comparison of such runs."""
    return LanguageComparison if job == "language" else _beside_job(CompareConfig, "compare", CompareSection(job=job))


def sweep_of(job: str) -> type[SweepConfig]:
    """The configuration of a sweep over such runs."""
    return _beside_job(SweepConfig, "sweep", SweepSection(job=job))


def chosen_job(
    section: str,
    recipe: Path | None,
    given: Mapping[Key, Any],
    implied: Mapping[Key, str],
    saved: str | None,
    default: str,
) -> str:
    """The job that is run many times: as given, as in the recipe, or implied by a setting that only one job has."""
    written = (read_recipe(recipe)[0].get(section) if recipe is not None else None) or {}
    keys = [*given, *((section, name) for name in written)]
    only = next((implied[key] for key in keys if key in implied), None)
    job = str(given.get((section, "job")) or written.get("job") or saved or only or default)
    if job not in measured():
        raise UserError(unknown("job", job, measured()))
    return job


def must_leave_seeds_open(config: Section, job: str, what: str) -> None:
    """Raise if a seed is given: the experiment sets the seeds."""
    seed = KINDS[job].seed
    if seed in leaves(type(config)) and value_of(config, seed) != 0:
        raise UserError(f"a {what} runs the seeds 0, 1, ...: give the number of seeds with --seeds, and no seed.")


def must_fix_the_batch(config: Section) -> None:
    """Raise for an automatic batch size: it could differ between runs."""
    for key in leaves(type(config)):
        if key[-2:] == ("batch", "size") and isinstance(size := value_of(config, key), str):
            raise UserError(f"--batch-size {size} would give each run its own batch size: give a number.")
