"""Settings of `attnlab classify`."""

from __future__ import annotations

import os
from typing import ClassVar, Literal

from pydantic import field_validator

from attnlab.base.errors import unknown
from attnlab.config.job import JobConfig
from attnlab.config.sections import FilePath, OptimizerSection, ScheduleSection, Section, option


class TextsSection(Section):
    """The texts: a task the lab knows by name, or files."""

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
    data_folder: FilePath = option(None, "Folder of the tasks (default: the folder in ATTNLAB_DATA).")
    dev: FilePath = option(None, "File of the dev split.")
    test: FilePath = option(None, "File of the test split.")
    text: str | None = option(None, "Column of the text.")
    pair: str | None = option(None, "Column of a second text.")
    label: str | None = option(None, "Column of the label.")
    classes: str = option("", "Names of the classes, in order, separated by commas.")
    header: bool | None = option(None, "Whether the first row names columns (default: detected).")
    separator: str | None = option(
        None,
        "Between the fields of a row: comma, semicolon, tab, bar, bars (|||); word: the label is the first word of a "
        "line; fasttext: likewise after __label__ (default: detected).",
    )
    quote: str | None = option(None, "Around fields: double, single or none (default: detected).")
    encoding: str | None = option(None, "Encoding of the files (default: detected).")
    skip_bad_rows: bool = option(
        False, "Leave out rows that cannot be used and list them in skipped-rows.csv; otherwise they are refused."
    )
    allow_empty: bool = option(False, "Take empty texts as well; otherwise they are refused.")
    split_seed: int = option(0, "Seed of the splits taken from the training rows.", ge=0)
    folds: int | None = option(
        None, "Cross-validate: split the rows of one file into this many parts, each of which is test once.", ge=2
    )
    fold: int | None = option(None, "With --folds: train and test this part alone, from 1.", ge=1)
    hold_out: bool = option(True, "Without a test split, take one from the training rows; otherwise there is none.")
    max_tokens: int = option(128, "Longer texts are cut, of a pair the second; the cuts are reported.", ge=8)
    examples: int | None = option(
        None, "Use this many training examples, drawn with the seed, every class in its proportion.", ge=1
    )
    eval_examples: int | None = option(
        None,
        "Use at most this many examples of dev and of test, drawn with the seed of the splits, every class in its "
        "proportion.",
        ge=1,
    )
    class_weights: bool = option(False, "Give every class the same total weight, however rare.")
    score_test: bool = option(True, "Score the test split at the end; a sweep leaves it to the winner.")

    @field_validator("task")
    @classmethod
    def _file_from_anywhere(cls, task: str) -> str:
        return os.path.abspath(os.path.expanduser(task)) if os.path.exists(os.path.expanduser(task)) else task


class EncoderSection(Section):
    topic: ClassVar[str] = "Model"
    common: ClassVar[tuple[str, ...] | None] = ("name",)

    name: str = option("minilm", "A short name ('attnlab models list'), a folder, or a name on the hub.", "--model")
    pooling: Literal["auto", "pooler", "first", "mean", "last"] = option(
        "auto", "The vector of a text: the model's pooler, its first or last token, the mean; auto: as in its training."
    )
    head: Literal["auto", "linear", "dense", "words"] = option(
        "auto", "linear, dense (one more layer), words (T5 answers with the class's name); auto: the family's default."
    )
    dropout: float = option(0.1, "Dropout before the classification head.", ge=0, lt=1)
    fast: bool = option(
        True, "Exchange dropout and attention of the encoder for faster ones that compute the same (CPU)."
    )


class JointSection(Section):
    """Masked words of unlabelled texts, learned together with the classes."""

    topic: ClassVar[str] = "Joint training"
    common: ClassVar[tuple[str, ...] | None] = ("mlm",)

    mlm: FilePath = option(None, "Unlabelled texts, one per line, whose masked words are learned too.", "--joint-mlm")
    weight: float = option(0.3, "Weight of the masked words' loss.", "--mlm-weight", ge=0)
    schedule: Literal["constant", "up", "down"] = option(
        "constant", "The weight over the run: constant, up from 0 or down to 0.", "--mlm-schedule"
    )
    share: float = option(0.15, "Share of the pieces that are masked.", "--mask-share", gt=0, le=1)
    whole_words: bool = option(False, "Mask all pieces of a word together.")


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
        "before the text), prefix (keys and values in every layer), or an adapter of peft: lora, dora, rslora, ia3, "
        "loha, lokr, oft, hra.",
        "--tune",
    )
    length: int = option(128, "Number of prompt vectors, or of prefix keys.", "--prompt-length", ge=1)
    rank: int = option(8, "Rank of adapters (oft: block size).", ge=1)
    alpha: float = option(16.0, "Adapters are scaled by alpha / rank.", "--adapter-alpha", gt=0)
    adapter_dropout: float = option(0.0, "Dropout before adapters.", ge=0, lt=1)
    layers: int = option(2, "Number of last layers that learn (--tune last).", "--last-layers", ge=1)
    adversarial: float = option(
        0.0,
        "Learn each text also with its word vectors moved by this share of their norm towards a higher loss "
        "(such as 0.05; a step takes twice as long).",
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
        "accuracy", "Dev measure that decides which weights are kept and when to stop early."
    )
    train_sample: int = option(1000, "Number of training examples scored at each evaluation; 0: none.", ge=0)
    on_collapse: Literal["say", "stop", "retry"] = option(
        "say", "When nearly all inputs get one class: report it (say), stop, or restart at a third of the rate (retry)."
    )
    label_errors: bool = option(True, "List the training rows whose label may be wrong, in the report.")
    overfit: int | None = option(None, "Check the setup: memorize this many training examples, and nothing else.", ge=2)


METHOD_RATES = {
    "full": 5e-5,
    "last": 2e-4,
    "bitfit": 1e-3,
    "head": 1e-2,
    "prompt": 1e-2,
    "prefix": 5e-3,
    "ia3": 5e-3,
    **dict.fromkeys(("lora", "dora", "rslora", "loha", "lokr", "oft", "hra"), 5e-4),
}
"""With Adam and its relatives: the fewer weights are trained, the higher the rate."""
OPTIMIZER_FACTORS = {"sgd": 200, "asgd": 2000, "adagrad": 10, "adadelta": 20_000, "adamax": 2, "rmsprop": 0.2}
"""By how much the usual rate of another optimizer differs: rules of thumb, to start from."""


def usual_rate(method: str, optimizer: str) -> float:
    """Where to start with a tuning method and an optimizer; unknown names are refused elsewhere."""
    return METHOD_RATES.get(method, METHOD_RATES["full"]) * OPTIMIZER_FACTORS.get(optimizer.lower(), 1)


class RatedOptimizer(OptimizerSection):
    """An optimizer whose rate, unless given, follows from what it tunes."""

    topic: ClassVar[str] = OptimizerSection.topic
    lr: float | None = option(  # type: ignore[assignment]
        None, "Peak learning rate (default: the usual one of the tuning method and the optimizer).", gt=0
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
