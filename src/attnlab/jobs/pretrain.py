"""Pretrain a GPT on a corpus: next tokens, or corrupted spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from attnlab.data.batching import Batches, BatchPlan
from attnlab.data.corpus import read_corpus
from attnlab.data.corruption import CorpusExamples
from attnlab.data.vocabulary import Vocabulary
from attnlab.jobs.configs import PretrainConfig
from attnlab.jobs.job import Parts
from attnlab.jobs.knowledge import data_facts, make_gpt, model_files
from attnlab.objectives import NextToken
from attnlab.runs.files import sha256
from attnlab.training.loop import Evaluate, Metric


class PretrainJob:
    kind = "pretrain"

    def __init__(self, config: PretrainConfig) -> None:
        self.config = config

    def build(self, device: str) -> Parts:
        config = self.config
        documents, questions, facts = self._read()
        vocabulary = Vocabulary.build([*documents, *questions], config.data.tokens)
        model = make_gpt(config.model, vocabulary)
        train, dev = _split([vocabulary.encode(text) for text in documents], config)
        examples = self._examples(train, vocabulary)
        facts |= {"documents": len(train), "tokens": sum(map(len, train)), "vocabulary": len(vocabulary)}
        longer = sum(len(document) > examples.room for document in train)
        if longer:
            facts["changes"] = [
                f"{longer} of {len(train)} documents are longer than the context of {config.model.context}: "
                "each epoch sees a random part of them."
            ]
        evaluate = self._evaluate(dev, vocabulary, device) if dev else None
        return Parts(
            model, NextToken(), examples, evaluate, Metric("loss", "lower") if dev else None,
            files=model_files(config.model, vocabulary), facts=facts,
        )  # fmt: skip

    def _read(self) -> tuple[list[str], list[str], dict[str, Any]]:
        """Documents, further texts whose words the vocabulary must know, and facts for the record."""
        if self.config.data.corpus is None:
            world = self.config.world.world()
            splits = ("train", "dev", "test")
            questions = [text for split in splits for pair in world.questions(split) for text in pair]
            return world.corpus(), questions, data_facts(source="synthetic world", people=len(world.people))
        path = Path(self.config.data.corpus)
        return read_corpus(path), ["Where was born?"], data_facts(source=str(path), sha256=sha256(path))

    def _examples(self, documents: list[list[int]], vocabulary: Vocabulary) -> CorpusExamples:
        config = self.config
        return CorpusExamples(documents, vocabulary, config.model.context, config.objective.name, config.training.seed)

    def _evaluate(self, documents: list[list[int]], vocabulary: Vocabulary, device: str) -> Evaluate:
        """The loss on documents kept aside, with the same spans every time."""
        examples = self._examples(documents, vocabulary)
        return mean_loss(Batches(examples, BatchPlan(examples.lengths)), device)


def mean_loss(batches: Batches, device: str) -> Evaluate:
    """Evaluate the objective over a whole set, every target counting alike."""
    objective = NextToken()

    def evaluate(model: nn.Module) -> dict[str, float]:
        total = weight = 0.0
        for batch in batches.once():
            weight += objective.weight(batch)
            total += objective.weight(batch) * objective(model, batch.to(torch.device(device))).item()
        return {"loss": total / max(1.0, weight)}

    return evaluate


def _split(documents: list[list[int]], config: PretrainConfig) -> tuple[list[list[int]], list[list[int]]]:
    order = np.random.default_rng([config.training.seed, 1]).permutation(len(documents))
    kept_aside = set(order[: round(config.data.dev_share * len(documents))].tolist())
    train = [document for n, document in enumerate(documents) if n not in kept_aside]
    return train, [documents[n] for n in sorted(kept_aside)]
