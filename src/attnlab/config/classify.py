"""Settings of `attnlab classify`."""

from __future__ import annotations

import os
from typing import ClassVar, Literal

from pydantic import field_validator, model_validator

from attnlab.base.errors import unknown
from attnlab.config.job import JobConfig
from attnlab.config.sections import (
    AUTO_STEPS,
    BatchSection,
    FilePath,
    OptimizerSection,
    ScheduleSection,
    Section,
    TrainingSection,
    option,
    parse_every,
)
from attnlab.config.usual import FEW_BATCH, usual_batch, usual_epochs, usual_rate


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
    max_tokens: int | None = option(
        None,
        "Longer texts are cut, of a pair the second; the cuts are reported (default: what leaves 95% of the texts "
        "whole, up to the model's own limit).",
        ge=8,
    )
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

    name: str = option(
        "minilm",
        "A short name ('attnlab models list'), a folder, or a name on the hub; or a model without a network to train: "
        "tfidf (logistic regression on TF-IDF), embeddings (on the vectors of a frozen encoder), majority.",
        "--model",
    )
    encoder: str | None = option(
        None,
        "Of --model embeddings: the encoder (default: minilm). Of --model tfidf: the encoder whose tokens --max-tokens "
        "counts (default: texts are read whole).",
    )
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


CONTRASTIVE = "contrastive"
METHODS = (
    "full",
    "head",
    CONTRASTIVE,
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
        "full (all weights), head (the body is frozen), contrastive (the body on pairs of texts, then the head: for "
        "few labels), last (the last layers), bitfit (biases), prompt (vectors before the text), prefix (keys and "
        "values in every layer), or an adapter of peft: lora, dora, rslora, ia3, loha, lokr, oft, hra.",
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
    baselines: bool = option(
        True, "Put the most common class, TF-IDF and the frozen encoder, with logistic regression, beside the result."
    )
    label_errors: bool = option(True, "List the training rows whose label may be wrong, in the report.")
    overfit: int | None = option(None, "Check the setup: memorize this many training examples, and nothing else.", ge=2)


MAJORITY, TFIDF, EMBEDDINGS = "majority", "tfidf", "embeddings"
BASELINES = (MAJORITY, TFIDF, EMBEDDINGS)
"""Models without a network to train, which every result is put beside."""
LINEAR = (MAJORITY, TFIDF)
DEFAULT_ENCODER = "minilm"


class RatedOptimizer(OptimizerSection):
    """An optimizer whose rate, unless given, follows from what it tunes."""

    topic: ClassVar[str] = OptimizerSection.topic
    lr: float | Literal["auto"] | None = option(  # type: ignore[assignment]
        None,
        "Peak learning rate, or 'auto' to find it on dev by a short test of several (default: the usual one of the "
        "tuning method, the model's size and the optimizer; --tune head needs none).",
    )

    @field_validator("lr")
    @classmethod
    def _positive(cls, rate: float | str | None) -> float | str | None:
        if isinstance(rate, float) and rate <= 0:
            raise ValueError(f"expected a number above 0, got {rate:g}")
        return rate


class UsualBatch(BatchSection):
    """Batches whose size, unless given, follows from the model and the number of rows."""

    topic: ClassVar[str] = BatchSection.topic
    size: int | Literal["auto", "largest"] | None = option(
        None,
        f"Examples per batch (default: by the model's size, fewer for few rows), 'auto' for the most that fit and "
        f"leave {AUTO_STEPS} steps per epoch, or 'largest' for the most that fit.",
        "--batch-size",
    )

    default_size: ClassVar[int | None] = None


class TuningSteps(TrainingSection):
    """A finished classifier is used, not continued, unless its checkpoints are asked for."""

    topic: ClassVar[str] = TrainingSection.topic
    keep: int | None = option(  # type: ignore[assignment]
        None,
        "Number of last checkpoints to keep, also when it is finished (default: 2 while it trains, then only the best "
        "weights on dev).",
        ge=1,
    )


class ClassifyConfig(JobConfig):
    default_epochs: ClassVar[int | None] = None  # they follow from the model and the number of rows

    data: TextsSection = TextsSection()
    model: EncoderSection = EncoderSection()
    tuning: TuningSection = TuningSection()
    joint: JointSection = JointSection()
    optimizer: RatedOptimizer = RatedOptimizer(weight_decay=0.01, beta2=0.999)
    schedule: ScheduleSection = ScheduleSection(name="linear", warmup_ratio=0.1)
    batch: UsualBatch = UsualBatch()
    training: TuningSteps = TuningSteps()
    watch: WatchSection = WatchSection()

    @model_validator(mode="after")
    def _without_network(self) -> ClassifyConfig:
        """`embeddings` is the frozen encoder with a fitted head; what trains weights does not go with a baseline."""
        model = self.model
        if model.name not in BASELINES:
            if model.encoder is not None:
                raise ValueError(f"encoder is for the models tfidf and embeddings: give {model.name!r} alone")
            return self
        if self.tuning.method not in ("full", "head") or self.joint.mlm is not None or self.tuning.adversarial:
            raise ValueError(f"the model {model.name} has no weights to tune: leave out method, mlm and adversarial")
        if model.name == EMBEDDINGS:
            model.name, model.encoder = model.encoder or DEFAULT_ENCODER, None
            model.head = "linear"
            self.tuning.method, self.optimizer.lr, self.optimizer.name = "head", None, "adamw"
        elif model.encoder is None and self.data.max_tokens is not None:
            model.encoder = DEFAULT_ENCODER  # somebody's tokens have to count
        return self

    @model_validator(mode="after")
    def _pairs_alone(self) -> ClassifyConfig:
        """Learning from pairs fits the head itself, at every evaluation."""
        if self.tuning.method != CONTRASTIVE:
            return self
        if self.joint.mlm is not None or self.tuning.adversarial or self.model.head not in ("auto", "linear"):
            raise ValueError("contrastive learns from pairs and fits its own head: leave out mlm, adversarial and head")
        if self.optimizer.lr == "auto":
            raise ValueError("contrastive has no loss on dev to judge a rate by: give lr a number, or leave it out")
        if parse_every(self.training.evaluate_every)[0] == 0:
            raise ValueError("contrastive fits its head at every evaluation, and evaluate_every is 0: give a number")
        if self.machine.processes > 1:
            raise ValueError(
                "contrastive compares all texts of a batch, so one process must hold them: leave out processes"
            )
        return self

    @property
    def is_linear(self) -> bool:
        """A classifier of counted words, without an encoder."""
        return self.model.name in LINEAR

    @property
    def is_fitted(self) -> bool:
        """Logistic regression to convergence; a head for which a rate or an optimizer was given is trained by steps."""
        plain = self.optimizer.lr is None and self.optimizer.name == "adamw"
        head = self.tuning.method == "head" and self.model.head in ("auto", "linear") and self.joint.mlm is None
        return self.is_linear or (plain and head)

    @property
    def pools_frozen(self) -> bool:
        """Whether the head is fitted to vectors of the body as they are, so that they are pooled as in its training."""
        return self.is_fitted or self.tuning.method == CONTRASTIVE

    def fill_in(self, parameters: int, rows: int) -> None:
        """What was not given becomes usual, so that the run's own configuration holds numbers; `rows` to train on."""
        if self.tuning.method == CONTRASTIVE:
            self.batch.by_length = False  # texts of one length are often of one class: a batch needs several
        if self.optimizer.lr is None:
            self.optimizer.lr = usual_rate(self.tuning.method, self.optimizer.name, parameters)
        if self.batch.size is None and self.batch.tokens is None:
            self.batch.size = usual_batch(parameters, rows)
        if self.training.epochs is None and self.training.steps is None:
            size = self.batch.size if isinstance(self.batch.size, int) else FEW_BATCH
            steps = -(-rows // (size * self.batch.accumulate))
            memorize = self.watch.overfit is not None
            self.training.epochs = 60 if memorize else usual_epochs(self.tuning.method, parameters, steps)
