"""A tuned classifier, taken from its run folder or from what was exported: to predict, to score, to give away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.base.errors import UserError
from attnlab.base.machine import facts
from attnlab.base.machine.facts import resolve_device
from attnlab.config import check
from attnlab.config.classify import ClassifyConfig
from attnlab.data.encoded import EncodedExamples, text_examples
from attnlab.data.tasks.labelled import LabelledText
from attnlab.data.tasks.tables import Columns
from attnlab.models.pretrained.classifier import Classifier, HeadOnly
from attnlab.models.pretrained.load import Loaded, load_classifier
from attnlab.models.pretrained.masked import joint_model
from attnlab.models.pretrained.predicting import predict
from attnlab.models.pretrained.source import fingerprint
from attnlab.models.pretrained.tuning import tune
from attnlab.runs import read_config, read_record
from attnlab.runs.checkpoints import load_best
from attnlab.stats.scores import Scores


@dataclass
class Trained:
    """A model with its best weights, and what it needs to read texts."""

    run: Path
    config: ClassifyConfig
    model: nn.Module
    """Tokens in, logits out."""
    tokenizer: Any
    classes: tuple[str, ...]
    longest: int
    columns: Columns | None
    """Where texts and labels stood in the files of training."""
    folder: Path
    """Of the base model."""
    device: str = "cpu"

    @property
    def paired(self) -> bool:
        return self.columns is not None and self.columns.pair is not None

    def encode(self, examples: Sequence[LabelledText], where: str = "") -> EncodedExamples:
        return text_examples(examples, self.tokenizer, self.longest, where)

    def logits(self, texts: EncodedExamples) -> Tensor:
        """(N, K), in the order of the texts."""
        return predict(self.model, texts, self.device)

    def score(self, examples: Sequence[LabelledText]) -> Scores:
        return Scores(self.logits(self.encode(examples)), torch.tensor([example.label for example in examples]))

    def ready(self, device: str) -> Trained:
        """On a device of this machine, whatever it was trained on; all that is needed is a pass forwards."""
        self.device = resolve_device(device)
        torch.set_num_threads(facts.cores())
        self.model.to(self.device).eval()
        return self


def load_trained(path: Path, device: str = "auto") -> Trained:
    """The classifier of a run, or of a folder that `attnlab export` made."""
    from attnlab.models.pretrained.exported import is_export, load_export

    found = load_export(path) if is_export(path) else load_run(path)
    return found.ready(device)


def load_run(run: Path) -> Trained:
    """The classifier of a run; the base model must still be the one it was tuned from."""
    record = read_record(run)
    if record["kind"] != "classify":
        raise UserError(f"{run} is a {record['kind']} run: it holds no classifier.")
    config = check(ClassifyConfig, read_config(run))
    classes = tuple(record["data"]["classes"])
    loaded = load_tuned(config, classes)
    must_be_base(loaded.folder, record["data"]["weights"], run)
    holder: nn.Module = loaded.model
    if config.tuning.method == "head":
        assert isinstance(loaded.model, Classifier)
        holder = HeadOnly(loaded.model)
    elif config.joint.mlm is not None:
        holder = joint_model(loaded, config.tuning.method)
    load_best(holder, run)
    longest = min(config.data.max_tokens, loaded.longest)
    columns = record["data"].get("columns")
    return Trained(
        run,
        config,
        loaded.model,
        loaded.tokenizer,
        classes,
        longest,
        Columns(**columns) if columns else None,
        loaded.folder,
    )


def load_tuned(config: ClassifyConfig, classes: Sequence[str]) -> Loaded:
    """The model that a configuration names, ready to learn as it says."""
    model, tuning = config.model, config.tuning
    loaded = load_classifier(model.name, classes, model.pooling, model.head, model.dropout)
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


def must_be_base(folder: Path, weights: str, tuned: Path) -> None:
    """What was tuned is the difference to a base: to any other it is nonsense."""
    if fingerprint(folder) != weights:
        raise UserError(f"{tuned} was tuned from other weights than those now in {folder}: put the old ones back.")
