"""A tuned classifier, taken from its run folder: to predict, to score, to give away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.config import check
from attnlab.data.tasks.labelled import Example
from attnlab.data.texts import text_examples
from attnlab.errors import UserError
from attnlab.jobs import joint
from attnlab.jobs.configs import ClassifyConfig
from attnlab.jobs.knowledge import load_best
from attnlab.pretrained.classifier import Classifier, HeadOnly
from attnlab.pretrained.label_words import LabelWords
from attnlab.pretrained.predicting import predict
from attnlab.pretrained.source import fingerprint
from attnlab.runs import read_config, read_record
from attnlab.scoring import Scores
from attnlab.training.setup import resolve


@dataclass
class Trained:
    """The model of a run with its best weights, and what it needs to read texts."""

    run: Path
    config: ClassifyConfig
    model: Classifier | LabelWords
    tokenizer: Any
    classes: tuple[str, ...]
    longest: int
    folder: Path
    """Of the base model."""

    def logits(self, examples: Sequence[Example]) -> Tensor:
        """(N, K), in the order of the examples."""
        texts = text_examples(examples, self.tokenizer, self.longest)
        return predict(self.model, texts, self.config.machine.device)

    def score(self, examples: Sequence[Example]) -> Scores:
        return Scores(self.logits(examples), torch.tensor([example.label for example in examples]))


def load_trained(run: Path, device: str = "auto") -> Trained:
    """The classifier of a finished run; the base model must still be the one it was tuned from."""
    from attnlab.jobs.classify import load_tuned

    record = read_record(run)
    if record["kind"] != "classify":
        raise UserError(f"{run} is a {record['kind']} run: it holds no classifier.")
    config = check(ClassifyConfig, read_config(run))
    config.machine = resolve(config.machine.model_copy(update={"device": device}))
    torch.set_num_threads(int(config.machine.threads))
    classes = tuple(record["data"]["classes"])
    loaded = load_tuned(config, classes)
    if fingerprint(loaded.folder) != record["data"]["weights"]:
        raise UserError(f"{run} was tuned from other weights than those now in {loaded.folder}: put the old ones back.")
    holder: nn.Module = loaded.model
    if config.tuning.method == "head":
        assert isinstance(loaded.model, Classifier)
        holder = HeadOnly(loaded.model)
    elif config.joint.mlm is not None:
        holder = joint.model(config, loaded)
    load_best(holder, run)
    loaded.model.to(config.machine.device).eval()
    longest = min(config.data.max_tokens, loaded.longest)
    return Trained(run, config, loaded.model, loaded.tokenizer, classes, longest, loaded.folder)
