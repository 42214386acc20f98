"""The configurations of the training commands, made of sections. Free of torch: help must be quick."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from attnlab.config import (
    BatchSection,
    FilePath,
    MachineSection,
    OptimizerSection,
    ScheduleSection,
    Section,
    StepsSection,
    TrainingSection,
    option,
    split_list,
)
from attnlab.errors import unknown
from attnlab.jobs.measures import ACCURACIES, Measure

if TYPE_CHECKING:
    from attnlab.data.world import World
    from attnlab.models.gpt import GPTShape


class JobConfig(Section):
    """What every training command can be told; each adds its own sections."""

    default_epochs: ClassVar[int] = 10
    headlines: ClassVar[tuple[Measure, ...]] = ()  # what a comparison of such runs shows

    optimizer: OptimizerSection = OptimizerSection()
    schedule: ScheduleSection = ScheduleSection()
    batch: BatchSection = BatchSection()
    training: TrainingSection = TrainingSection()
    machine: MachineSection = MachineSection()


class WorldSection(Section):
    """The synthetic world that is used when no file is given."""

    topic: ClassVar[str] = "Synthetic world"

    people: int = option(400, "People in the synthetic world.", ge=4)
    places: int = option(60, "Birthplaces in the synthetic world.", ge=2)
    skew: float = option(0.5, "How unevenly people are spread: place number k has weight 1/k^skew.", ge=0)
    documents: int = option(4, "Documents about a person.", ge=1)
    sentences: int = option(2, "Sentences a document, one of them on the birthplace.", ge=1)
    paraphrases: int = option(4, "Wordings of the birthplace a person gets over all documents.", ge=1)
    name_first: bool = option(False, "Only wordings that name the person before the place.")
    shuffled: bool = option(True, "Sentences of a document in random order; else the birthplace first.")
    train_people: float = option(0.5, "Share of people whose questions are for fine-tuning.", gt=0, lt=1)
    dev_people: float = option(0.2, "Share of people whose questions are for choosing.", ge=0, lt=1)
    test_people: float = option(0.3, "Share of people whose questions are for the report.", ge=0, lt=1)
    world_seed: int = option(0, "Seed of the world.", ge=0)

    def world(self) -> World:
        from attnlab.data.world import World, WorldSpec

        values = self.model_dump()
        shares = {split: values.pop(f"{split}_people") for split in ("train", "dev", "test")}
        return World(WorldSpec(seed=values.pop("world_seed"), **shares, **values))


class ShapeSection(Section):
    """The size of a model; what is not given comes from the preset."""

    topic: ClassVar[str] = "Model"

    preset: Literal["vanilla", "modern"] = option(
        "vanilla", "vanilla (the documents' GPT) or modern (rotary, RMSNorm, QK-norm, squared ReLU)."
    )
    layers: int = option(4, "Blocks of attention and MLP.", ge=1)
    heads: int = option(8, "Attention heads; the width must be a multiple of it.", ge=1)
    width: int = option(256, "Size of a token's vector.", ge=1)
    context: int = option(128, "Longest sequence in tokens.", ge=8)
    dropout: float | None = option(None, "Share of activations dropped (default: the preset's).", ge=0, lt=1)
    norm: str | None = option(None, "layernorm or rmsnorm (default: the preset's).")
    activation: str | None = option(None, "gelu, relu, relu2, silu or swiglu (default: the preset's).")
    qk_norm: bool | None = option(None, "Normalise queries and keys (default: the preset's).")
    zero_init: bool | None = option(None, "Start every block as the identity (default: the preset's).")
    tied: bool | None = option(None, "Use the token embeddings as the head (default: the preset's).")


class GPTSection(ShapeSection):
    """All that decides how a GPT is built."""

    attention: str = option("vanilla", "Attention variant by name, or your own .py file with one class.")
    positions: str = option("preset", "none, learned, sinusoidal, rotary, alibi, or preset: the preset's.")

    @field_validator("attention")
    @classmethod
    def _own_file(cls, name: str) -> str:
        return os.path.abspath(os.path.expanduser(name)) if name.endswith(".py") else name

    @field_validator("positions", mode="before")
    @classmethod
    def _not_said(cls, value: Any) -> Any:
        return "preset" if value is None else value

    def shape(self, vocabulary: int) -> GPTShape:
        from attnlab.models.gpt import preset

        given = {name: value for name, value in self.model_dump().items() if value not in (None, "preset")}
        return preset(given.pop("preset"), vocabulary, **given)


class CorpusSection(Section):
    topic: ClassVar[str] = "Data"

    corpus: FilePath = option(None, "Text file, one document a line; without it, a synthetic world.")
    tokens: Literal["characters", "words"] = option("characters", "What a token is.")
    dev_share: float = option(
        0.0, "Share of documents kept aside to measure the loss on (default: 0, of masked words 0.05).", ge=0, lt=1
    )
    questions: FilePath = option(
        None, "Questions and answers to mix in, tab-separated: answering is learnt with reading."
    )
    world_questions: bool = option(False, "Mix in the training questions of the synthetic world.")
    dev: FilePath = option(None, "Questions and answers to choose the best weights by; needs --questions.")


OBJECTIVES = ("span", "truncated", "salient", "causal")
MASKED_WORDS = "mlm"


class ObjectiveSection(Section):
    topic: ClassVar[str] = "Objective"

    name: str = option(
        "span",
        "span (a span hidden anywhere), truncated (the same after a random cut, as in the course), salient (names, "
        "places and numbers hidden) or causal (next token), several by commas: each example draws one; or mlm (masked "
        "words, which pretrain a BERT).",
        "--objective",
    )
    hidden_only: bool = option(False, "Take the loss on what was hidden only, not on every token.")

    @field_validator("name", mode="before")
    @classmethod
    def _known(cls, value: Any) -> str:
        names = split_list(value)
        for name in names:
            if name not in (*OBJECTIVES, MASKED_WORDS):
                raise ValueError(unknown("objective", name, (*OBJECTIVES, MASKED_WORDS)))
        if MASKED_WORDS in names and len(names) > 1:
            raise ValueError(f"{MASKED_WORDS} pretrains a BERT, the others a GPT: they cannot take turns")
        if not names:
            raise ValueError("give at least one objective")
        return ",".join(names)

    @model_validator(mode="after")
    def _something_hidden(self) -> ObjectiveSection:
        if self.hidden_only and "causal" in self.names:
            raise ValueError("hidden_only needs an objective that hides something: causal does not")
        return self

    @property
    def names(self) -> list[str]:
        return split_list(self.name)

    @property
    def masked(self) -> bool:
        return self.names == [MASKED_WORDS]


class MaskingSection(Section):
    """A BERT learns masked words. What can be said of its shape is in the section of the model."""

    topic: ClassVar[str] = "Masked words (--objective mlm)"

    start: str | None = option(
        None, "The BERT to go on with: a folder, a run or a name (its --lr is 1e-4 unless given); else a new one.",
        "--from",
    )  # fmt: skip
    vocabulary: int = option(8000, "Pieces of a vocabulary learned from the corpus (without --from).", ge=16)
    share: float = option(0.15, "Share of the pieces that is asked for.", "--mask-share", gt=0, le=1)
    whole_words: bool = option(False, "Mask all pieces of a word together.")


class PretrainConfig(JobConfig):
    default_epochs: ClassVar[int] = 20

    data: CorpusSection = CorpusSection()
    world: WorldSection = WorldSection()
    model: GPTSection = GPTSection()
    objective: ObjectiveSection = ObjectiveSection()
    masking: MaskingSection = MaskingSection()
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)


class PairsSection(Section):
    topic: ClassVar[str] = "Data"

    train: FilePath = option(None, "Questions and answers, tab-separated; else the synthetic world's.")
    dev: FilePath = option(None, "Questions and answers to choose the best weights by.")
    test: FilePath = option(None, "Questions and answers to report on, once, at the end.")
    corpus: FilePath = option(None, "Text whose words or characters the vocabulary must know (without --from).")
    tokens: Literal["characters", "words"] = option("characters", "What a token is (without --from).")


class StartSection(Section):
    topic: ClassVar[str] = "Start"

    run: FilePath = option(None, "A pretrained run: its weights, vocabulary and shape.", "--from")
    fresh: bool = option(False, "Take vocabulary and shape from --from, but new weights: no pretraining.")


class FinetuneConfig(JobConfig):
    default_epochs: ClassVar[int] = 10
    headlines: ClassVar[tuple[Measure, ...]] = ACCURACIES

    start: StartSection = StartSection()
    data: PairsSection = PairsSection()
    world: WorldSection = WorldSection()
    model: GPTSection = GPTSection()
    optimizer: OptimizerSection = OptimizerSection(lr=6e-4)
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)


class ChainDataSection(CorpusSection):
    train: FilePath = option(None, "Questions and answers, tab-separated; else the synthetic world's.")
    dev: FilePath = option(None, "Questions and answers to choose the best weights by.")
    test: FilePath = option(None, "Questions and answers to report on, once, at the end.")


class PretrainPart(Section):
    """What is said of pretraining alone."""

    objective: ObjectiveSection = ObjectiveSection()
    optimizer: OptimizerSection = OptimizerSection(lr=1e-3)
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
    batch: BatchSection = BatchSection()
    training: StepsSection = StepsSection()

    @field_validator("objective")
    @classmethod
    def _can_be_asked(cls, objective: ObjectiveSection) -> ObjectiveSection:
        if objective.masked:
            raise ValueError(f"{MASKED_WORDS} pretrains a BERT, which answers no questions: use 'attnlab pretrain'")
        return objective


class FinetunePart(Section):
    """What is said of fine-tuning alone."""

    optimizer: OptimizerSection = OptimizerSection(lr=6e-4)
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
    batch: BatchSection = BatchSection()
    training: StepsSection = StepsSection()


class KnowledgeConfig(Section):
    """Pretraining, fine-tuning and what they share, given once."""

    topic: ClassVar[str] = "Chain"
    headlines: ClassVar[tuple[Measure, ...]] = (
        *ACCURACIES, Measure("told_accuracy", "place known in the text", "test"),
    )  # fmt: skip

    seed: int = option(0, "Seed of the weights and the order of the data, in both halves.", ge=0)
    control: bool = option(False, "Fine-tune without pretraining as well.")
    data: ChainDataSection = ChainDataSection()
    world: WorldSection = WorldSection()
    model: GPTSection = GPTSection()
    pretrain: PretrainPart = PretrainPart()
    finetune: FinetunePart = FinetunePart()
    machine: MachineSection = MachineSection()


class TextsSection(Section):
    """Which texts: a task the lab knows by name, or files."""

    topic: ClassVar[str] = "Data"

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

    mlm: FilePath = option(None, "Unlabelled texts, one a line: their masked words are learned as well.", "--joint-mlm")
    weight: float = option(0.3, "Weight of the masked words' loss.", "--mlm-weight", ge=0)
    schedule: Literal["constant", "up", "down"] = option(
        "constant", "The weight over the run: constant, up from 0, down to 0.", "--mlm-schedule"
    )
    share: float = option(0.15, "Share of the pieces that are masked.", "--mask-share", gt=0, le=1)
    whole_words: bool = option(False, "Mask words with all their pieces.")


METHODS = ("full", "head", "last", "bitfit", "prompt", "prefix",
           "lora", "dora", "rslora", "ia3", "loha", "lokr", "oft", "hra")  # fmt: skip


class TuningSection(Section):
    topic: ClassVar[str] = "Tuning"

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
        0.0, "Learn each text also with its word vectors moved by this share of their length to where the loss grows "
        "(0.05, say; a step takes twice the time).", ge=0, lt=1,
    )  # fmt: skip

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method not in METHODS:
            raise ValueError(unknown("tuning method", method, METHODS))
        return method


class WatchSection(Section):
    topic: ClassVar[str] = "Watching"

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
    headlines: ClassVar[tuple[Measure, ...]] = ACCURACIES

    data: TextsSection = TextsSection()
    model: EncoderSection = EncoderSection()
    tuning: TuningSection = TuningSection()
    joint: JointSection = JointSection()
    optimizer: OptimizerSection = OptimizerSection(lr=5e-5, weight_decay=0.01, beta2=0.999)
    schedule: ScheduleSection = ScheduleSection(name="linear", warmup_ratio=0.1)
    watch: WatchSection = WatchSection()

    @property
    def default_epochs(self) -> int:  # type: ignore[override]
        return 3 if self.watch.overfit is None else 60


class StreamSection(Section):
    topic: ClassVar[str] = "Data"

    corpus: FilePath = option(None, "Text file, read as one stream and cut into blocks.")
    tokens: Literal["characters", "words"] = option("characters", "What a token is.")
    dev_share: float = option(0.1, "Share of the text kept for validation: its end.", gt=0, lt=1)
    rare: int = option(2, "Words seen less often than this in training count as unknown.", ge=1)
    train_context: int | None = option(None, "Tokens of a training block (default: the context).", ge=2)


class MeasuresSection(Section):
    """What is measured besides the loss on the validation part."""

    topic: ClassVar[str] = "Measures"

    dev_blocks: int = option(256, "Validation blocks measured while training, evenly spaced; all at the end.", ge=1)
    prefix_blocks: int = option(16, "Validation blocks measured prefix by prefix, the future hidden; 0 = none.", ge=0)
    test_contexts: str = option("", "Lengths to test the trained model at, such as 100,200,400.")

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
    default_epochs: ClassVar[int] = 5
    headlines: ClassVar[tuple[Measure, ...]] = (
        Measure("dev_loss", "validation loss", "dev", "lower", share=False, unit="nats a token"),
    )

    data: StreamSection = StreamSection()
    model: GPTSection = GPTSection()
    measures: MeasuresSection = MeasuresSection()
    schedule: ScheduleSection = ScheduleSection(warmup_ratio=0.05)
