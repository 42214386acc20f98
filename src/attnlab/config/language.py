"""Settings of `attnlab language`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import field_validator

from attnlab.config.gpt import GPTSection
from attnlab.config.job import JobConfig
from attnlab.config.sections import FilePath, ScheduleSection, Section, option, split_list

DEFAULT_STEPS = 1000


class StreamSection(Section):
    topic: ClassVar[str] = "Data"
    common: ClassVar[tuple[str, ...] | None] = ("corpus", "tokens", "dev_share")

    corpus: FilePath = option(None, "Text file, read as one stream and cut into blocks.")
    tokens: Literal["characters", "words"] = option("characters", "What a token is.")
    dev_share: float = option(0.1, "Share of the text for validation: its end.", gt=0, lt=1)
    rare: int = option(2, "Words that occur less often than this in training count as unknown.", ge=1)
    train_context: int | None = option(None, "Tokens per training block (default: the context).", ge=2)


class MeasuresSection(Section):
    """What is measured besides the validation loss."""

    topic: ClassVar[str] = "Measures"
    common: ClassVar[tuple[str, ...] | None] = ("test_contexts",)

    dev_blocks: int = option(256, "Validation blocks scored during training, evenly spaced; all at the end.", ge=1)
    prefix_blocks: int = option(16, "Validation blocks scored prefix by prefix, with the future hidden; 0: none.", ge=0)
    test_contexts: str = option("", "Lengths to test the trained model at, such as 100,200,400.")
    samples: int = option(2, "Samples that the trained model writes for the report; 0: none.", ge=0)
    sample_prompt: str = option("", "What these samples continue (default: the beginning of the validation text).")
    sample_length: int = option(150, "Tokens of each sample.", ge=1)

    @field_validator("test_contexts", mode="before")
    @classmethod
    def _lengths(cls, value: Any) -> str:
        parts = split_list(value)
        if not all(part.isdecimal() and int(part) >= 2 for part in parts):
            raise ValueError(f"expected whole numbers from 2, such as 100,200,400, got {value!r}")
        return ",".join(dict.fromkeys(parts))

    @property
    def lengths(self) -> list[int]:
        return sorted(int(part) for part in split_list(self.test_contexts))


class LanguageConfig(JobConfig):
    default_epochs: ClassVar[int | None] = 5

    data: StreamSection = StreamSection()
    model: GPTSection = GPTSection()
    measures: MeasuresSection = MeasuresSection()
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)


class BudgetSection(Section):
    """The same for every run."""

    topic: ClassVar[str] = "Budget of each run"
    common: ClassVar[tuple[str, ...] | None] = ("steps", "seconds")
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("steps", "seconds"),)

    steps: int | None = option(None, f"Steps of the optimizer (default: {DEFAULT_STEPS}).", ge=1)
    seconds: float | None = option(
        None, "Seconds of training instead: the steps of a variant follow from its speed, measured once.", gt=0
    )
    evaluations: int = option(10, "Points of the validation curve; a checkpoint is written at each.", ge=1)
    log_every: int = option(10, "Steps between two lines of training metrics.", ge=1)
