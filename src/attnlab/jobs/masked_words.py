"""Pretrain a BERT on masked words: an existing one, continued on a new text, or a new one with its own vocabulary.

The weights that are best on the held-out documents are stored in RUN/model, a Hugging Face folder with its tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from attnlab.base.errors import UserError
from attnlab.config.pretrain import PretrainConfig
from attnlab.config.recipe import default_of, refuse_settings
from attnlab.data.batching import IGNORE, Batch, Batches, BatchPlan, split_documents
from attnlab.data.text.masking import MaskedRows, Masking, blocks
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.jobs.job import Parts
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.heads import BertForMaskedLanguageModel
from attnlab.models.gpt import attention_file
from attnlab.models.pretrained.source import find_bert, fingerprint
from attnlab.runs import RunFolder
from attnlab.runs.checkpoints import load_best
from attnlab.training.callbacks import TrainState
from attnlab.training.loop import Metric
from attnlab.training.objectives import Evaluate, MaskedWords

DEV_SHARE = 0.05
CONTINUED_RATE, NEW_RATE = 1e-4, 5e-4  # learning rates for pretrained and for new weights
GPT_ONLY = (
    ("data", "tokens"),
    ("data", "questions"),
    ("data", "world_questions"),
    ("data", "dev"),
    ("model", "preset"),
    ("model", "positions"),
    ("model", "norm"),
    ("model", "qk_norm"),
    ("model", "zero_init"),
    ("objective", "hidden_only"),
    ("objective", "titles"),
)


class MaskedPretraining:
    """Builds the parts; fills in what the configuration leaves open, so that the run records it."""

    def __init__(self, config: PretrainConfig) -> None:
        self.config = config

    def build(self, documents: list[str], facts: dict[str, Any], device: str) -> Parts:
        config = self.config
        refuse_settings(GPT_ONLY, config, "is for a GPT, and --objective mlm pretrains a BERT: leave it out.")
        self._fill_in()
        train, dev = split_documents(documents, config.data.dev_share, config.training.seed)
        model, tokenizer = self._load_start(facts) if config.masking.start else self._build_new(train)
        rows, dev_rows = self._rows(train, tokenizer), self._rows(dev, tokenizer)
        facts |= {
            "documents": len(train),
            "dev_documents": len(dev),
            "rows": len(rows.rows),
            "pieces": sum(rows.lengths),
            "vocabulary": len(tokenizer),
        }
        changes = []
        if config.data.dev_share and not dev_rows.rows:
            changes = [f"{len(documents)} documents are too few to keep {config.data.dev_share:.0%} aside."]
        evaluate = score(dev_rows, device) if dev_rows.rows else None

        def finish(run: RunFolder, state: TrainState) -> dict[str, Any]:
            load_best(model, run.path)
            tokenizer.save_pretrained(run.path / "model")
            model.save_pretrained(run.path / "model")
            scores = evaluate(model.eval()) if evaluate else {}
            return {f"dev_{name}": value for name, value in scores.items()} | {"model": str(run.path / "model")}

        return Parts(
            model,
            MaskedWords(),
            rows,
            evaluate,
            Metric("loss", "lower") if evaluate else None,
            files=attention_file(config.model.attention),
            facts=facts,
            changes=changes,
            finish=finish,
        )

    def _fill_in(self) -> None:
        config = self.config
        if "dev_share" not in config.data.model_fields_set:
            config.data.dev_share = DEV_SHARE
        if "lr" not in config.optimizer.model_fields_set:
            config.optimizer.lr = CONTINUED_RATE if config.masking.start else NEW_RATE

    def _build_new(self, documents: Sequence[str]) -> tuple[BertForMaskedLanguageModel, WordPiece]:
        section = self.config.model
        tokenizer = WordPiece.learn(documents, self.config.masking.vocabulary)
        shape = BertConfig(
            len(tokenizer),
            section.width,
            section.layers,
            section.heads,
            4 * section.width,
            section.context,
            **self._changes(),
        )
        return BertForMaskedLanguageModel(shape), tokenizer

    def _load_start(self, facts: dict[str, Any]) -> tuple[BertForMaskedLanguageModel, WordPiece]:
        """The model and tokenizer of a folder; a shape that is given must be that of the model."""
        config, section = self.config, self.config.model
        if config.masking.vocabulary != default_of(PretrainConfig, ("masking", "vocabulary")):
            raise UserError("--vocabulary is for a new BERT: the one of --from has its own vocabulary.")
        folder = find_bert(str(config.masking.start)).resolve()
        tokenizer = WordPiece.from_pretrained(folder)
        model = BertForMaskedLanguageModel.from_pretrained(folder, **self._changes())
        shape = model.config
        for name in ("layers", "heads", "width"):
            if name in section.model_fields_set and getattr(section, name) != getattr(shape, name):
                raise UserError(
                    f"--{name} {getattr(section, name)}: {folder} has {getattr(shape, name)}: leave it out."
                )
            setattr(section, name, getattr(shape, name))
        if "context" not in section.model_fields_set:
            section.context = min(section.context, shape.context)
        if section.context > shape.context:
            raise UserError(f"--context {section.context} is more than the {shape.context} positions of {folder}.")
        config.masking.start = str(folder)
        facts |= {"start": str(folder), "start_sha256": fingerprint(folder)}
        if model.weight_report is not None and (note := model.weight_report.sentence()):
            facts["start_weights"] = note  # a new head needs more training
        return model, tokenizer

    def _changes(self) -> dict[str, Any]:
        """The settings of the model besides its size, where given."""
        section = self.config.model
        changes: dict[str, Any] = {name: getattr(section, name) for name in ("activation", "tied")}
        changes |= {"dropout": section.dropout, "attention_dropout": section.dropout}
        if section.attention != default_of(PretrainConfig, ("model", "attention")):
            changes["attention"] = section.attention
        return {name: value for name, value in changes.items() if value is not None}

    def _rows(self, documents: Sequence[str], tokenizer: WordPiece) -> MaskedRows:
        """The documents as rows; a long one is cut into several, without loss."""
        config = self.config
        rows = [row for text in documents for row in blocks(text, tokenizer, config.model.context)]
        settings = config.masking
        masking = Masking(tokenizer, settings.share, whole_words=settings.whole_words, seed=config.training.seed)
        return MaskedRows(rows, masking)


def score(rows: MaskedRows, device: str) -> Evaluate:
    """Loss and accuracy over all masked pieces of a set; every call masks the same pieces."""
    batches = Batches(rows, BatchPlan(rows.lengths))

    @torch.no_grad()
    def evaluate(model: nn.Module) -> dict[str, float]:
        def measured(batch: Batch) -> tuple[float, float, int]:
            inputs = batch.to(torch.device(device)).inputs
            targets = inputs["labels"][inputs["labels"] != IGNORE]  # (M,)
            output = model(**inputs)
            correct = float((output.masked_logits.argmax(-1) == targets).sum())
            return float(output.loss) * targets.numel(), correct, targets.numel()

        parts = batches.each(measured)
        loss, correct, count = (sum(part[n] for part in parts) for n in range(3))
        return {"loss": loss / max(1.0, count), "accuracy": correct / max(1.0, count)}

    return evaluate
