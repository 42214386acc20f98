"""Settings of `attnlab classify`."""

from __future__ import annotations

import os
from typing import ClassVar, Literal

from pydantic import field_validator

from attnlab.base.errors import unknown
from attnlab.config.job import JobConfig
from attnlab.config.rates import RatedOptimizer, usual_rate
from attnlab.config.sections import FilePath, ScheduleSection, Section, option


class TextsSection(Section):
    """Which texts: a task the lab knows by name, or files."""

    topic: ClassVar[str] = "Data"
    common: ClassVar[tuple[str, ...] | None] = (
        "task",
        "dev",
        "test",
        "text",
        "pair",
        "label",
        "max_tokens",
        "examples",
    )

    task: str = option(
        "sentiment", "A task (sentiment, sst2, boolq, yelp), a file (CSV, TSV, JSONL, Parquet), a folder or a hub name."
    )
    data_folder: FilePath = option(None, "Where tasks are (default: the folder in ATTNLAB_DATA).")
    dev: FilePath = option(None, "File of the dev split.")
    test: FilePath = option(None, "File of the test split.")
    text: str | None = option(None, "Column of the text.")
    pair: str | None = option(None, "Column of a second text.")
    label: str | None = option(None, "Column of the label.")
    classes: str = option("", "Names of the classes, in order, separated by commas.")
    header: bool | None = option(None, "Does the first row name columns? (default: found)")
    split_seed: int = option(0, "Seed of a split that is made.", ge=0)
    hold_out: bool = option(True, "Where no test split is given, take one from the training rows; else there is none.")
    max_tokens: int = option(128, "Longer texts are cut, of a pair the second (and the cuts are reported).", ge=8)
    examples: int | None = option(
        None, "Use only this many training examples, every class in its proportion, drawn with the seed.", ge=1
    )
    class_weights: bool = option(False, "Let every class weigh the same in sum, however rare.")
    score_test: bool = option(True, "Report on the test split at the end; a search leaves it to the winner.")

    @field_validator("task")
    @classmethod
    def _file_from_anywhere(cls, task: str) -> str:
        return os.path.abspath(os.path.expanduser(task)) if os.path.exists(os.path.expanduser(task)) else task


class EncoderSection(Section):
    topic: ClassVar[str] = "Model"
    common: ClassVar[tuple[str, ...] | None] = ("name",)

    name: str = option("minilm", "A short name ('attnlab models list'), a folder, or a name on the hub.", "--model")
    pooling: Literal["auto", "pooler", "first", "mean", "last"] = option(
        "auto", "The vector of a text: the model's pooler, its first or last token, the mean; auto: as it was trained."
    )
    head: Literal["auto", "linear", "dense", "words"] = option(
        "auto", "linear, dense (one layer more), words (T5 answers with the class's name); auto: the family's own."
    )
    dropout: float = option(0.1, "Dropout before the classification head.", ge=0, lt=1)


class JointSection(Section):
    """Masked words of unlabelled texts, learned beside the classes."""

    topic: ClassVar[str] = "Joint training"
    common: ClassVar[tuple[str, ...] | None] = ("mlm",)

    mlm: FilePath = option(None, "Unlabelled texts, one a line: their masked words are learned as well.", "--joint-mlm")
    weight: float = option(0.3, "Weight of the masked words' loss.", "--mlm-weight", ge=0)
    schedule: Literal["constant", "up", "down"] = option(
        "constant", "The weight over the run: constant, up from 0, down to 0.", "--mlm-schedule"
    )
    share: float = option(0.15, "Share of the pieces that are masked.", "--mask-share", gt=0, le=1)
    whole_words: bool = option(False, "Mask words with all their pieces.")


METHODS = (
    "full",
    "head",
    "last",
    "bitfit",
    "prompt",
    "prefix",
    "lora",
    "dora",
    "rslora",
    "ia3",
    "loha",
    "lokr",
    "oft",
    "hra",
)


class TuningSection(Section):
    topic: ClassVar[str] = "Tuning"
    common: ClassVar[tuple[str, ...] | None] = ("method", "rank")

    method: str = option(
        "full",
        "full (all weights), head (the body is frozen), last (the last layers), bitfit (biases), prompt (vectors "
        "before the text), prefix (keys and values in every layer), or of peft lora, dora, rslora, ia3, loha, lokr, "
        "oft, hra.",
        "--tune",
    )
    length: int = option(128, "Vectors of a prompt, or keys of a prefix.", "--prompt-length", ge=1)
    rank: int = option(8, "Rank of adapters (oft: size of a block).", ge=1)
    alpha: float = option(16.0, "Adapters weigh alpha / rank.", "--adapter-alpha", gt=0)
    adapter_dropout: float = option(0.0, "Dropout before adapters.", ge=0, lt=1)
    layers: int = option(2, "How many of the last layers learn (--tune last).", "--last-layers", ge=1)
    adversarial: float = option(
        0.0,
        "Learn each text also with its word vectors moved by this share of their length to where the loss grows "
        "(0.05, say; a step takes twice the time).",
        ge=0,
        lt=1,
    )

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method not in METHODS:
            raise ValueError(unknown("tuning method", method, METHODS))
        return method


class WatchSection(Section):
    topic: ClassVar[str] = "Watching"
    common: ClassVar[tuple[str, ...] | None] = ("choose_by", "overfit")

    choose_by: Literal["accuracy", "macro_f1", "loss"] = option(
        "accuracy", "The measure on dev that decides which weights are kept and when to stop early."
    )
    train_sample: int = option(
        1000, "Training examples on which accuracy is measured at each evaluation; 0: none.", ge=0
    )
    on_collapse: Literal["say", "stop", "retry"] = option(
        "say", "When nearly all inputs get one class: say so and go on, stop, or start again at a third of the rate."
    )
    overfit: int | None = option(
        None, "Check the set-up: learn this many training examples by heart, and nothing else.", ge=2
    )


class ClassifyConfig(JobConfig):
    data: TextsSection = TextsSection()
    model: EncoderSection = EncoderSection()
    tuning: TuningSection = TuningSection()
    joint: JointSection = JointSection()
    optimizer: RatedOptimizer = RatedOptimizer(weight_decay=0.01, beta2=0.999)
    schedule: ScheduleSection = ScheduleSection(name="linear", warmup_ratio=0.1)
    watch: WatchSection = WatchSection()

    def fill_in_rate(self) -> None:
        """A rate that was not given becomes the usual one, so that the run's own configuration holds a number."""
        if self.optimizer.lr is None:
            self.optimizer.lr = usual_rate(self.tuning.method, self.optimizer.name)

    @property
    def default_epochs(self) -> int:  # type: ignore[override]
        return 3 if self.watch.overfit is None else 60
