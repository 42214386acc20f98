"""A classifier before it is trained, with the examples of every split in the form it reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.config.classify import TFIDF, ClassifyConfig, TuningSection
from attnlab.data.batching import Examples
from attnlab.data.encoded import EncodedExamples, EncodedTexts, FeatureExamples, text_examples, usual_length
from attnlab.data.tasks.labelled import LabelledSet
from attnlab.models.linear.logistic import Logistic, fit_logistic, fit_vectors, prior
from attnlab.models.linear.model import WORDS, SparseLinear, SparseRows, WordReader
from attnlab.models.linear.tfidf import Tfidf
from attnlab.models.pretrained.classifier import Classifier, HeadOnly, predict
from attnlab.models.pretrained.label_words import LabelWords
from attnlab.models.pretrained.load import LoadedClassifier
from attnlab.models.pretrained.masked import joint_model
from attnlab.models.pretrained.source import fingerprint
from attnlab.models.pretrained.tuned import encoder_limit, load_for_tuning
from attnlab.models.pretrained.tuning.prompt import Prompted
from attnlab.training.objectives import Evaluate


@dataclass
class Built:
    model: nn.Module
    """What is trained: all of it, or the head."""
    examples: dict[str, Examples]
    texts: Mapping[str, EncodedTexts]
    longest: int | None
    """Tokens of a text that are read; None: all."""
    facts: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    fit: Callable[[], Logistic] | None = None
    """Finds the weights at once; None: they are trained step by step."""
    loaded: LoadedClassifier | None = None
    """The encoder and its tokenizer; a classifier of counted words has none."""
    seconds: float = 0.0
    """Spent on the vectors that do not change in training."""

    @property
    def tokenizer(self) -> Any:
        return self.loaded.tokenizer if self.loaded is not None else None


def build(config: ClassifyConfig, data: LabelledSet, read: LabelledSet, device: str) -> Built:
    """The classifier of a configuration, whose open settings are filled in; `read`: all rows that were read, by which
    the length limit is chosen, however few are trained on."""
    if config.is_linear:
        return _linear(config, data, read)
    loaded = load_for_tuning(config, data.classes)
    if config.data.max_tokens is None:
        config.data.max_tokens = usual_length(read.splits["train"], loaded.tokenizer, loaded.longest)
    longest = min(config.data.max_tokens, loaded.longest)
    texts = encode_splits(data, loaded, longest)
    facts = {"weights": fingerprint(loaded.folder), "fast_encoder": loaded.fast_encoder}
    built = Built(loaded.model, dict(texts), texts, longest, facts, loaded=loaded)
    if longest < config.data.max_tokens:
        built.changes.append(f"the model reads at most {longest} tokens, not {config.data.max_tokens}.")
    if config.joint.mlm is not None:
        built.model = joint_model(loaded, config.tuning.method)  # refuses a frozen body
    elif config.tuning.method == "head":
        start = time.perf_counter()
        head, features = frozen_body(loaded.model, texts, device)
        built.seconds = time.perf_counter() - start
        built.model, built.examples = head, dict(features)
        if config.is_fitted:
            built.fit = lambda: fit_head(head, features["train"], _weights(config, data))
    if not config.is_fitted:
        body = sum(weight.numel() for weight in loaded.model.parameters())
        config.fill_in(body, len(data.splits["train"]))
    built.changes += loaded.notes
    return built


def _linear(config: ClassifyConfig, data: LabelledSet, read: LabelledSet) -> Built:
    start = time.perf_counter()
    tokenizer, longest = encoder_limit(config)
    if tokenizer is not None and config.data.max_tokens is None and longest is not None:
        config.data.max_tokens = longest = usual_length(read.splits["train"], tokenizer, longest)
    reader = word_reader(config.model.name, data, tokenizer, longest)
    rows = {split: reader.encode(part) for split, part in data.splits.items()}
    model = SparseLinear(reader.width, len(data.classes))
    files = {WORDS: reader.words.to_json()} if reader.words is not None else {}
    built = Built(model, dict(rows), rows, longest, files=files, seconds=time.perf_counter() - start)
    built.fit = lambda: fit_sparse(model, rows["train"], _weights(config, data))
    return built


def word_reader(name: str, data: LabelledSet, tokenizer: Any, longest: int | None) -> WordReader:
    """With the vocabulary of the training texts, as far as they are read; of the most common class, without one."""
    reader = WordReader(None, tokenizer, longest)
    if name == TFIDF:
        reader.words = Tfidf.of(reader.as_read(data.splits["train"])[0])
    return reader


def fit_sparse(model: SparseLinear, train: SparseRows, weights: list[float] | None) -> Logistic:
    """Logistic regression; without any words, how common the classes are."""
    classes = len(model.bias)
    if train.matrix.nnz:
        fitted = fit_logistic(train.matrix, train.labels, classes, weights)
    else:
        fitted = Logistic(model.weight.detach().numpy().T, prior(train.labels, classes), None, 1)
    model.take(fitted)
    return fitted


def fit_head(head: HeadOnly, train: FeatureExamples, weights: list[float] | None) -> Logistic:
    """Logistic regression on the vectors of a frozen body."""
    out = head.head.out
    fitted = fit_vectors(train.features.double().numpy(), train.labels.tolist(), out.out_features, weights)
    fitted.into(out)
    return fitted


def with_fitted_head(
    evaluate: Evaluate, train: EncodedExamples, config: ClassifyConfig, data: LabelledSet, device: str
) -> Evaluate:
    """Before each evaluation the head is fitted to the vectors of the training texts as they are now."""

    def measured(model: nn.Module) -> dict[str, float]:
        assert isinstance(model, Classifier)
        vectors = FeatureExamples(predict(Features(model), train, device), train.labels)
        fit_head(HeadOnly(model), vectors, _weights(config, data))
        return evaluate(model)

    return measured


def _weights(config: ClassifyConfig, data: LabelledSet) -> list[float] | None:
    return data.weights() if config.data.class_weights else None


def encode_splits(data: LabelledSet, loaded: LoadedClassifier, longest: int) -> dict[str, EncodedExamples]:
    return {
        split: text_examples(part, loaded.tokenizer, longest, f"{data.name}, {split}, ")
        for split, part in data.splits.items()
    }


def frozen_body(
    model: Classifier | LabelWords, texts: Mapping[str, EncodedExamples], device: str
) -> tuple[HeadOnly, dict[str, FeatureExamples]]:
    """The head alone, and every text as its vector from the frozen body, computed once with dropout off."""
    assert isinstance(model, Classifier)  # tuning only the head is refused for any other
    model.to(device)
    return HeadOnly(model), {
        split: FeatureExamples(predict(Features(model), part, device), part.labels) for split, part in texts.items()
    }


class Features(nn.Module):
    """A classifier without its head, called like the whole."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, **inputs: Tensor) -> Tensor:
        return self.classifier.features(**inputs)


def word_vectors(model: Classifier | LabelWords, tuning: TuningSection) -> nn.Module:
    """The embedding table of the input words; raises if it is used for anything else."""
    if isinstance(model, LabelWords):
        raise UserError(
            "--adversarial: a model that answers with words uses the table for its answers too: use --head linear."
        )
    if tuning.method == "head":
        raise UserError("--adversarial: with --tune head texts are encoded once, before training: use another --tune.")
    body: Any = model.body.body if isinstance(model.body, Prompted) else model.body
    table: nn.Module = body.get_input_embeddings()
    return table
