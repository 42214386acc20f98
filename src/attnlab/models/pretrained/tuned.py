"""A tuned classifier, loaded from its run or from a folder that `attnlab export` wrote.

An exported folder contains

    attnlab.json             classes, lengths, columns, base model, how it was tuned
    model.safetensors, …     a plain folder of transformers ("transformers", or "words" for one that answers in words)
    weights.safetensors      beside the encoder, what was trained on top of it ("encoder"); or the trained weights
                             alone, which need their base model ("weights"); or, with words.json, a linear classifier
                             of counted words ("linear")
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.base.errors import UserError, first_line
from attnlab.base.files import read_json, read_text
from attnlab.base.machine import facts
from attnlab.base.machine.facts import is_out_of_memory, resolve_device
from attnlab.config import check
from attnlab.config.classify import TFIDF, ClassifyConfig
from attnlab.data.encoded import EncodedTexts, text_examples
from attnlab.data.tasks.catalog import TASKS
from attnlab.data.tasks.columns import Columns
from attnlab.data.tasks.labelled import LabelledText
from attnlab.data.tasks.prediction_inputs import InputFile, Texts, from_file, open_file
from attnlab.models.linear.model import WORDS, SparseLinear, WordReader
from attnlab.models.linear.tfidf import Tfidf
from attnlab.models.pretrained.classifier import Classifier, HeadOnly, predict
from attnlab.models.pretrained.folder import PICKLED, check_model, weight_files
from attnlab.models.pretrained.load import (
    AS_DATA,
    LoadedClassifier,
    frozen_pooling,
    import_transformers,
    load_classifier,
    load_config,
    load_tokenizer,
    longest_input,
    quietly,
)
from attnlab.models.pretrained.masked import joint_model
from attnlab.models.pretrained.source import fingerprint, model_folder
from attnlab.models.pretrained.tuning import tune
from attnlab.runs import read_record
from attnlab.runs.checkpoints import load_best, load_weights
from attnlab.runs.settings import must_be_unchanged, trained_config
from attnlab.stats.scores import Scores

ABOUT, WEIGHTS = "attnlab.json", "weights.safetensors"
ENCODER_FORM, LINEAR_FORM = "encoder", "linear"
MOST_TOKENS = 2**20


@dataclass
class TunedClassifier:
    """A model with its best weights, and what it needs to read texts."""

    run: Path
    config: ClassifyConfig
    model: nn.Module
    """Tokens in, logits out."""
    tokenizer: Any
    classes: tuple[str, ...]
    longest: int
    columns: Columns | None
    """The columns of texts and labels in the training files."""
    folder: Path
    """Of the base model."""
    device: str = "cpu"
    words: WordReader | None = None
    """Reads the texts of a linear classifier, which has no tokens."""
    temperature: float = 1.0
    """By which logits are still to be divided."""

    @property
    def paired(self) -> bool:
        return self.columns is not None and self.columns.pair is not None

    def read(self, file: Path, labelled: bool = False) -> Texts:
        """The texts of a file, with columns as in training; `labelled`: it must have labels, whatever its ending."""
        return from_file(file, self.classes, self.columns, *self._reading, labelled)

    def open(self, file: Path) -> InputFile:
        """The same row by row, once all of them have been looked at."""
        return open_file(file, self.classes, self.columns, *self._reading)

    @property
    def _reading(self) -> tuple[Callable[[str], str], bool]:
        """What is done to a text of its task, and whether its labels are numbers that stand for classes."""
        task = TASKS.get(self.config.data.task)
        return (task.clean if task else str), task is not None or bool(self.config.data.classes)

    def encode(self, examples: Sequence[LabelledText], where: str = "") -> EncodedTexts:
        if self.words is not None:
            return self.words.encode(examples)
        return text_examples(examples, self.tokenizer, self.longest, where)

    def logits(self, texts: EncodedTexts) -> Tensor:
        """(N, K), in the order of the texts."""
        logits = predict(self.model, texts, self.device) / self.temperature
        if logits.shape[-1] != len(self.classes):
            raise UserError(f"{self.run} names {len(self.classes)} classes, and its weights have {logits.shape[-1]}.")
        return logits

    def score(self, examples: Sequence[LabelledText]) -> Scores:
        return Scores(self.logits(self.encode(examples)), torch.tensor([example.label for example in examples]))

    def ready(self, device: str) -> TunedClassifier:
        """On a device of this machine, whichever it was trained on; only forward passes are needed."""
        self.device = resolve_device(device)
        torch.set_num_threads(facts.threads())
        self.model.to(self.device).eval()
        return self


def load_trained(path: Path, device: str = "auto") -> TunedClassifier:
    """The classifier of a run, or of a folder that `attnlab export` wrote."""
    return (load_export(path) if is_export(path) else load_run(path)).ready(device)


def load_run(run: Path) -> TunedClassifier:
    """The classifier of a run; the base model must still be the one it was tuned from."""
    record = read_record(run)
    if record["kind"] != "classify":
        raise UserError(f"{run} is a {record['kind']} run: it contains no classifier.")
    config, data = check(ClassifyConfig, trained_config(run)), record.get("data", {})
    classes = classes_of(run, record)
    try:
        columns = Columns.stored(data.get("columns"))
    except ValueError as error:
        raise UserError(f"{run} has no valid record of its columns ({error}): start it again.") from None
    if config.is_linear:
        return calibrated(_load_linear_run(run, config, classes, columns), temperature_of(record))
    if not isinstance(data.get("weights"), str):
        raise UserError(f"{run} has no valid record of its base model: start it again.")
    loaded = load_for_tuning(config, classes)
    check_base(loaded.folder, data["weights"], run)
    trained: nn.Module = loaded.model
    if config.tuning.method == "head":
        assert isinstance(loaded.model, Classifier)
        trained = HeadOnly(loaded.model)
    elif config.joint.mlm is not None:
        trained = joint_model(loaded, config.tuning.method)
    load_best(trained, run)
    longest = min(config.data.max_tokens or loaded.longest, loaded.longest)
    found = TunedClassifier(run, config, loaded.model, loaded.tokenizer, classes, longest, columns, loaded.folder)
    return calibrated(found, temperature_of(record))


def _load_linear_run(
    run: Path, config: ClassifyConfig, classes: tuple[str, ...], columns: Columns | None
) -> TunedClassifier:
    """A classifier of counted words; its vocabulary is a file of the run."""
    words = read_words(must_be_unchanged(run, WORDS)) if config.model.name == TFIDF else None
    reader = WordReader(words, *encoder_limit(config))
    model = SparseLinear(reader.width, len(classes))
    load_best(model, run)
    return TunedClassifier(
        run, config, model, reader.tokenizer, classes, reader.longest or MOST_TOKENS, columns, run, words=reader
    )


def encoder_limit(config: ClassifyConfig) -> tuple[Any, int | None]:
    """The tokenizer whose tokens count, and how many are read; None where texts are read whole."""
    if config.model.encoder is None:
        return None, None
    folder, transformers = model_folder(config.model.encoder), import_transformers()
    shape = load_config(transformers, folder)
    tokenizer = load_tokenizer(transformers, folder, shape)
    own = longest_input(shape, tokenizer)
    return tokenizer, min(config.data.max_tokens or own, own)


def read_words(file: Path) -> Tfidf:
    """The vocabulary in words.json."""
    try:
        return Tfidf.from_json(read_text(file))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{file} is no vocabulary ({first_line(error)}): restore it.") from None


def classes_of(run: Path, record: Mapping[str, Any]) -> tuple[str, ...]:
    """The classes of a run, from its record."""
    classes = record.get("data", {}).get("classes")
    if not isinstance(classes, list) or not classes or not all(isinstance(name, str) for name in classes):
        raise UserError(f"{run} has no valid record of its classes: start it again.")
    return tuple(classes)


def calibrated(trained: TunedClassifier, temperature: float) -> TunedClassifier:
    """The logits divided by the temperature that was found on dev: in the weights of the last layer, so that every
    form of an export has it; of a model that answers with words, beside it."""
    model = trained.model
    last = model if isinstance(model, SparseLinear) else model.head.out if isinstance(model, Classifier) else None
    if last is None:
        trained.temperature = temperature
        return trained
    with torch.no_grad():
        for weight in last.parameters():
            weight.div_(temperature)
    return trained


def temperature_of(record: Mapping[str, Any]) -> float:
    """1 for a run that is not finished, or of an earlier version."""
    found = record.get("results", {}).get("temperature", 1.0)
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 < found < math.inf:
        raise UserError(f"run.json: temperature is {found!r}, expected a number above 0: restore the file.")
    return float(found)


def load_for_tuning(config: ClassifyConfig, classes: Sequence[str]) -> LoadedClassifier:
    """The model that a configuration names, with the weights frozen and added that its tuning method needs."""
    model, tuning = config.model, config.tuning
    pooling: str = model.pooling
    head: str = model.head
    if config.pools_frozen:
        pooling = frozen_pooling(model.name) if pooling == "auto" else pooling
        head = "linear"
    loaded = load_classifier(model.name, classes, pooling, head, model.dropout, model.fast)
    tune(
        loaded.model,
        tuning.method,
        length=tuning.length,
        rank=tuning.rank,
        alpha=tuning.alpha,
        dropout=tuning.adapter_dropout,
        layers=tuning.layers,
    )
    return loaded


def check_base(folder: Path, weights: str, tuned: Path) -> None:
    """Tuned weights belong to one base model: its fingerprint must be `weights`."""
    if fingerprint(folder) != weights:
        raise UserError(f"{tuned} was tuned from other weights than those now in {folder}: put the old ones back.")


def load_encoder_classifier(path: Path, device: str = "auto") -> TunedClassifier:
    """The same for whoever looks inside an encoder: a classifier of counted words has nothing to look into."""
    trained = load_trained(path, device)
    if trained.words is not None:
        raise UserError(f"{path} is a classifier of counted words: it has no attention and no layers to look into.")
    return trained


def is_export(path: Path) -> bool:
    return (path / ABOUT).is_file()


def load_export(folder: Path) -> TunedClassifier:
    """The classifier in an exported folder; weights alone are put onto their base model."""
    try:
        about = read_json(folder / ABOUT)
        form, classes, columns = about["form"], tuple(about["classes"]), Columns.stored(about["columns"])
        if not all(isinstance(name, str) for name in classes):
            raise TypeError("classes must be names")
        config = check(ClassifyConfig, about["config"])
        if not config.is_linear and config.optimizer.lr is None:
            config.optimizer.lr = 1.0  # nothing is fitted here: pooling and head are those that are named
        longest, base = int(about["max_tokens"]), about["base"]
        if not 8 <= longest <= MOST_TOKENS:
            raise ValueError(f"max_tokens is {longest}")
        temperature = float(about.get("temperature", 1.0))  # earlier versions have none
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature is {temperature}")
        if form == LINEAR_FORM:
            return _load_linear_export(folder, config, classes, longest, columns)
        model, tokenizer, origin = _load_form(folder, form, classes, config, base["weights"])
    except UserError:
        raise
    except Exception as error:  # those of safetensors and tokenizers have no class of their own
        if is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"{folder} cannot be read as an exported classifier ({reason}): export it again.") from None
    found = TunedClassifier(folder, config, model, tokenizer, classes, longest, columns, origin)
    found.temperature = temperature
    return found


def _load_linear_export(
    folder: Path, config: ClassifyConfig, classes: tuple[str, ...], longest: int, columns: Columns | None
) -> TunedClassifier:
    from safetensors.torch import load_file

    words = read_words(folder / WORDS) if config.model.name == TFIDF else None
    tokenizer = load_tokenizer(import_transformers(), folder) if config.model.encoder is not None else None
    reader = WordReader(words, tokenizer, longest if tokenizer is not None else None)
    model = SparseLinear(reader.width, len(classes))
    load_weights(model, load_file(folder / WEIGHTS))
    return TunedClassifier(folder, config, model, tokenizer, classes, longest, columns, folder, words=reader)


def _load_form(
    folder: Path, form: str, classes: tuple[str, ...], config: ClassifyConfig, base: str
) -> tuple[nn.Module, Any, Path]:
    if form in ("weights", ENCODER_FORM):
        from safetensors.torch import load_file

        if form == ENCODER_FORM:  # its base is the folder itself, whose adapters are merged
            config.model.name, base = str(folder.resolve()), fingerprint(folder)
            if config.tuning.method not in ("prompt", "prefix"):
                config.tuning.method = "head"
        loaded = load_for_tuning(config, classes)
        check_base(loaded.folder, base, folder)
        load_weights(loaded.model, load_file(folder / WEIGHTS))
        return loaded.model, loaded.tokenizer, loaded.folder
    if weight_files(folder)[0].name == PICKLED:
        raise ValueError(f"{PICKLED} is a pickle, which no export contains")
    if form == "words":
        loaded = load_classifier(str(folder.resolve()), classes, head="words")
        return loaded.model, loaded.tokenizer, folder
    check_model(folder)
    transformers = import_transformers()
    settings = load_config(transformers, folder)
    with quietly():
        kind = transformers.AutoModelForSequenceClassification
        model = kind.from_pretrained(folder, config=settings, use_safetensors=True, **AS_DATA)
    return LogitsOnly(model), load_tokenizer(transformers, folder), folder


class LogitsOnly(nn.Module):
    """A model of transformers with the interface of the lab's: logits as a tensor."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(**inputs).logits
        return logits
