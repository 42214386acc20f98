"""Settings of `attnlab pretrain`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from attnlab.base.errors import unknown
from attnlab.config.gpt import GPTSection
from attnlab.config.job import JobConfig
from attnlab.config.sections import FilePath, ScheduleSection, Section, option, split_list
from attnlab.config.world import WorldSection


class CorpusSection(Section):
    topic: ClassVar[str] = "Data"
    common: ClassVar[tuple[str, ...] | None] = ("corpus", "tokens", "dev_share", "questions", "dev")

    corpus: FilePath = option(None, "Text file, one document per line; without it, a synthetic world.")
    tokens: Literal["characters", "words"] = option("characters", "What a token is.")
    dev_share: float = option(
        0.0, "Share of documents held out to measure the loss on (default: 0; for masked words 0.05).", ge=0, lt=1
    )
    questions: FilePath = option(
        None, "Questions and answers to mix in, tab-separated: answering is learned together with reading."
    )
    vocabulary_from: FilePath = option(
        None, "Further text whose characters or words the vocabulary must contain, such as questions to fine-tune on."
    )
    world_questions: bool = option(False, "Mix in the training questions of the synthetic world.")
    dev: FilePath = option(None, "Questions and answers that decide which weights are best; needs --questions.")


OBJECTIVES = ("span", "truncated", "salient", "causal")


MASKED_WORDS = "mlm"


class ObjectiveSection(Section):
    topic: ClassVar[str] = "Objective"
    common: ClassVar[tuple[str, ...] | None] = ("name",)

    name: str = option(
        "span",
        "span (a span hidden anywhere), truncated (the same after a random cut, as in the course), salient (names, "
        "places and numbers hidden) or causal (next token); with several, separated by commas, each example draws one; "
        "or mlm (masked words, which pretrain a BERT).",
        "--objective",
    )
    hidden_only: bool = option(False, "Compute the loss on the hidden tokens only, not on every token.")
    titles: bool = option(
        False,
        "With --hidden-only, compute the loss also on the name that begins a document: the model then knows which "
        "names it has read.",
    )

    @field_validator("name", mode="before")
    @classmethod
    def _known(cls, value: Any) -> str:
        names = split_list(value)
        for name in names:
            if name not in (*OBJECTIVES, MASKED_WORDS):
                raise ValueError(unknown("objective", name, (*OBJECTIVES, MASKED_WORDS)))
        if MASKED_WORDS in names and len(names) > 1:
            raise ValueError(f"{MASKED_WORDS} pretrains a BERT, the others a GPT: they cannot be combined")
        if not names:
            raise ValueError("expected at least one objective")
        return ",".join(names)

    @model_validator(mode="after")
    def _something_hidden(self) -> ObjectiveSection:
        if self.hidden_only and "causal" in self.names:
            raise ValueError("hidden_only needs an objective that hides tokens: causal hides none")
        if self.titles and not self.hidden_only:
            raise ValueError("titles needs hidden_only: without it the loss is on every token, titles among them")
        return self

    @property
    def names(self) -> list[str]:
        return split_list(self.name)

    @property
    def masked(self) -> bool:
        return self.names == [MASKED_WORDS]


class MaskingSection(Section):
    """Masked words, which a BERT learns. Its shape is in the section of the model."""

    topic: ClassVar[str] = "Masked words (--objective mlm)"
    common: ClassVar[tuple[str, ...] | None] = ("start", "vocabulary")

    start: str | None = option(
        None,
        "The BERT to continue from: a folder, a run or a name (--lr is then 1e-4 by default); else a new one.",
        "--from",
    )
    vocabulary: int = option(8000, "Size of the vocabulary learned from the corpus (without --from).", ge=16)
    share: float = option(0.15, "Share of the pieces to predict.", "--mask-share", gt=0, le=1)
    whole_words: bool = option(False, "Mask all pieces of a word together.")


class PretrainConfig(JobConfig):
    default_epochs: ClassVar[int | None] = 20

    data: CorpusSection = CorpusSection()
    world: WorldSection = WorldSection()
    model: GPTSection = GPTSection()
    objective: ObjectiveSection = ObjectiveSection()
    masking: MaskingSection = MaskingSection()
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
