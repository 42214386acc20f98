"""Fine-tune a pretrained encoder to classify texts: all of it, or its head alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.data.batching import Batches, BatchPlan, Examples
from attnlab.data.sentiment import load_sentiment
from attnlab.data.texts import FeatureExamples, TextExamples
from attnlab.jobs.configs import ClassifyConfig
from attnlab.jobs.job import Parts
from attnlab.jobs.knowledge import load_best
from attnlab.models.encoder import Classifier, HeadOnly, compute_features, load_encoder
from attnlab.objectives import Classification
from attnlab.runs import RunFolder
from attnlab.training.loop import Evaluate, Metric
from attnlab.training.snapshot import TrainState

LABELS = ("negative", "positive")


class ClassifyJob:
    kind = "classify"

    def __init__(self, config: ClassifyConfig) -> None:
        self.config = config

    def build(self, device: str) -> Parts:
        config = self.config
        classifier, tokenizer = load_encoder(config.model.name, len(LABELS), config.model.dropout)
        texts = {split: self._examples(split, tokenizer) for split in ("train", "dev", "test")}
        model: nn.Module = classifier
        data: dict[str, Examples] = dict(texts)
        facts: dict[str, Any] = {"examples": {split: len(part.labels) for split, part in texts.items()}}
        if cut := sum(part.cut for part in texts.values()):
            facts["changes"] = [f"{cut} texts are longer than {config.data.max_tokens} tokens and were cut."]
        feature_seconds = 0.0
        if config.tuning.method == "head":
            start = time.perf_counter()
            model = HeadOnly(classifier)
            classifier.to(device)
            data = {split: _features(classifier, part, device) for split, part in texts.items()}
            feature_seconds = time.perf_counter() - start

        def finish(run: RunFolder, state: TrainState) -> dict[str, Any]:
            load_best(model, run.path)
            cost = {"feature_seconds": feature_seconds} if feature_seconds else {}
            return cost | {f"{split}_{name}": value for split in ("dev", "test")
                    for name, value in _evaluate(data[split], device)(model.eval()).items()}  # fmt: skip

        return Parts(
            model, Classification(), data["train"], _evaluate(data["dev"], device),
            Metric("accuracy", "higher"), facts=facts, finish=finish,
        )  # fmt: skip

    def _examples(self, split: str, tokenizer: Any) -> TextExamples:
        examples = load_sentiment()[split]
        if split == "train" and self.config.data.examples:
            examples = examples[: self.config.data.examples]
        labels = [LABELS.index(example.label) for example in examples]
        return TextExamples([example.text for example in examples], labels, tokenizer, self.config.data.max_tokens)


def _evaluate(data: Examples, device: str) -> Evaluate:
    """Accuracy and loss on a whole set."""
    batches = Batches(data, BatchPlan(data.lengths))

    @torch.no_grad()
    def evaluate(model: nn.Module) -> dict[str, float]:
        right = count = loss = 0.0
        for batch in batches.once():
            inputs = dict(batch.to(torch.device(device)).inputs)
            labels = inputs.pop("labels")
            logits = model(**inputs)
            right += float((logits.argmax(-1) == labels).sum())
            loss += float(nn.functional.cross_entropy(logits, labels, reduction="sum"))
            count += len(labels)
        return {"accuracy": right / count, "loss": loss / count}

    return evaluate


def _features(classifier: Classifier, texts: TextExamples, device: str) -> FeatureExamples:
    """Every text through the frozen body once, like lengths together, put back in the set's order."""
    batches = list(Batches(texts, BatchPlan(texts.lengths)).once())

    def inputs() -> Iterator[tuple[Tensor, Tensor]]:
        for batch in batches:
            moved = batch.to(torch.device(device)).inputs
            yield moved["tokens"], moved["padding"]

    computed = torch.cat(compute_features(classifier, inputs()))
    order = [index for batch in batches for index in batch.indices]
    features = torch.empty_like(computed)
    features[order] = computed
    return FeatureExamples(features, texts.labels)
