"""Pretrain a GPT on a corpus: next tokens, or corrupted spans. For masked words (BERT) see masked_words.py."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import sha256
from attnlab.config.pretrain import PretrainConfig
from attnlab.config.recipe import leaves, refuse_settings
from attnlab.data.batching import Batches, BatchPlan, split_documents
from attnlab.data.questions import Pair, QuestionExamples, read_pairs
from attnlab.data.sequences import CorpusExamples, NextTokenExamples, SequenceSource
from attnlab.data.text.reading import read_corpus, read_prose
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, world_of
from attnlab.jobs.engine import TrainingJob
from attnlab.jobs.job import Parts, TrainedModel
from attnlab.jobs.masked_words import MaskedPretraining
from attnlab.models.asking import accuracy_measure
from attnlab.models.bert.trained import load_bert
from attnlab.models.gpt import make_gpt, model_files
from attnlab.models.loading import VOCABULARY, load_gpt, trains_bert
from attnlab.runs.settings import is_unchanged
from attnlab.training.loop import Metric
from attnlab.training.objectives import Evaluate, NextToken, mean_loss


class PretrainJob(TrainingJob[PretrainConfig]):
    kind = "pretrain"

    @cached_property
    def _world(self) -> World:
        return world_of(self.config.world)

    def build(self, device: str) -> Parts:
        config = self.config
        documents, facts = self._read()
        if config.objective.masked:
            return MaskedPretraining(config).build(documents, facts, device)
        refuse_masking(config)
        pairs = self._questions(facts)
        further = self._further_texts(pairs, facts)
        vocabulary = self._saved_vocabulary() or Vocabulary.build([*documents, *further], config.data.tokens)
        model = make_gpt(config.model, vocabulary)
        encoded = [vocabulary.encode(text) for text in documents]
        train, dev = split_documents(encoded, config.data.dev_share, config.training.seed)
        corpus = self._corpus(train, vocabulary)
        facts |= {"documents": len(train), "tokens": sum(map(len, train)), "vocabulary": len(vocabulary)}
        changes = []
        if corpus.longer:
            changes = [
                f"{corpus.longer} of {len(train)} documents are longer than the context of {config.model.context}: "
                "each epoch sees only a part of them."
            ]
        sources: list[SequenceSource] = [corpus]
        if pairs:
            sources.append(QuestionExamples(pairs["train"], vocabulary, config.model.context, config.data.questions))
        evaluate, metric = self._measure(dev, pairs, vocabulary, device)
        return Parts(
            model,
            NextToken(),
            NextTokenExamples(sources, vocabulary.pad),
            evaluate,
            metric,
            files=model_files(config.model, vocabulary),
            facts=facts,
            changes=changes,
        )

    @classmethod
    def load(cls, run: Path) -> TrainedModel:
        """A GPT, or a BERT if the run was trained on masked words."""
        return load_bert(run) if trains_bert(run) else load_gpt(run)

    def _saved_vocabulary(self) -> Vocabulary | None:
        """The vocabulary of a resumed run: an earlier version may have built it by another rule."""
        run = self.resumed
        return Vocabulary.read(run / VOCABULARY) if run is not None and is_unchanged(run, VOCABULARY) else None

    def _read(self) -> tuple[list[str], dict[str, Any]]:
        """Documents, and facts for the record."""
        if self.config.data.corpus is None:
            world = self._world
            return world.corpus(), {"source": "synthetic world", "people": len(world.people)}
        path = Path(self.config.data.corpus)
        read = read_prose if self.config.objective.masked else read_corpus
        return read(path), {"source": str(path), "sha256": sha256(path)}

    def _further_texts(self, pairs: dict[str, list[Pair]], facts: dict[str, Any]) -> list[str]:
        """Texts besides the documents that the vocabulary must cover: questions, if the run has any."""
        texts = [text for pair in pairs.get("train", []) for text in pair]
        if self.config.data.corpus is None:
            splits = ("train", "dev", "test")
            texts += [text for split in splits for pair in self._world.questions(split) for text in pair]
        if self.config.data.vocabulary_from is not None:
            path = Path(self.config.data.vocabulary_from)
            texts += read_corpus(path)
            facts["vocabulary_from_sha256"] = sha256(path)
        return texts

    def _questions(self, facts: dict[str, Any]) -> dict[str, list[Pair]]:
        """Questions to train on (train) and to measure (dev), by split; empty unless configured."""
        data = self.config.data
        if data.world_questions:
            if data.corpus is not None or data.questions is not None:
                raise UserError("--world-questions are about the synthetic world: leave out --corpus and --questions.")
            return {split: self._world.questions(split) for split in ("train", "dev")}
        if data.questions is None:
            if data.dev is not None:
                raise UserError("--dev needs --questions: the model must learn from questions to answer any.")
            return {}
        files = {"train": data.questions, "dev": data.dev}
        facts |= {
            f"{split}_sha256": sha256(Path(path)) for split, path in files.items() if path and Path(path).is_file()
        }
        return {split: read_pairs(Path(path)) for split, path in files.items() if path}

    def _corpus(self, documents: list[list[int]], vocabulary: Vocabulary) -> CorpusExamples:
        config = self.config
        return CorpusExamples(
            documents,
            vocabulary,
            config.model.context,
            config.objective.names,
            config.training.seed,
            config.objective.hidden_only,
            config.objective.titles,
        )

    def _measure(
        self, documents: list[list[int]], pairs: dict[str, list[Pair]], vocabulary: Vocabulary, device: str
    ) -> tuple[Evaluate | None, Metric | None]:
        """What is measured while training: answers to questions, else the loss on held-out documents, or nothing."""
        if "dev" in pairs:
            return accuracy_measure(vocabulary, pairs["dev"]), Metric("accuracy", "higher")
        if not documents:
            return None, None
        examples = NextTokenExamples([self._corpus(documents, vocabulary)], vocabulary.pad)  # the same spans every time
        return mean_loss(Batches(examples, BatchPlan(examples.lengths)), device), Metric("loss", "lower")


def refuse_masking(config: PretrainConfig) -> None:
    """Raise for a setting of masked words without --objective mlm."""
    keys = [key for key in leaves(PretrainConfig) if key[0] == "masking"]
    refuse_settings(keys, config, "is for masked words: add --objective mlm or leave it out.")
