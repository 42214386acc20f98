"""Pretrain a BERT on masked words: one that exists, on a person's own text, or a new one with a vocabulary of its own.

The best weights on the documents kept aside end up in RUN/model, a Hugging Face folder with its tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attnlab.base.errors import UserError
from attnlab.config.pretrain import PretrainConfig
from attnlab.config.recipe import default_of, refuse_settings
from attnlab.data.batching import IGNORE, Batches, BatchPlan, split_documents
from attnlab.data.text.masking import MaskedRows, Masking, blocks
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.jobs.job import Parts
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.heads import BertForMaskedLanguageModel
from attnlab.models.pretrained.source import find_bert, fingerprint
from attnlab.runs import RunFolder
from attnlab.runs.checkpoints import load_best
from attnlab.training.callbacks import TrainState
from attnlab.training.loop import Metric
from attnlab.training.objectives import Evaluate, MaskedWords

DEV_SHARE = 0.05
GOING_ON, BEGINNING = 1e-4, 5e-4  # learning rates of weights that know something, and of weights that do not
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
)


class MaskedPretraining:
    """Fills in what the configuration leaves open, so that the run's own says how it was."""

    def __init__(self, config: PretrainConfig) -> None:
        self.config = config

    def build(self, documents: list[str], facts: dict[str, Any], device: str) -> Parts:
        config = self.config
        refuse_settings(GPT_ONLY, config, "is for a GPT, and --objective mlm pretrains a BERT: leave it out.")
        self._fill_in()
        train, dev = split_documents(documents, config.data.dev_share, config.training.seed)
        model, tokenizer = self._begun(facts) if config.masking.start else self._new(train)
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
            found = evaluate(model.eval()) if evaluate else {}
            return {f"dev_{name}": value for name, value in found.items()} | {"model": str(run.path / "model")}

        return Parts(
            model,
            MaskedWords(),
            rows,
            evaluate,
            Metric("loss", "lower") if evaluate else None,
            files=self._files(),
            facts=facts,
            changes=changes,
            finish=finish,
        )

    def _fill_in(self) -> None:
        config = self.config
        if "dev_share" not in config.data.model_fields_set:
            config.data.dev_share = DEV_SHARE
        if "lr" not in config.optimizer.model_fields_set:
            config.optimizer.lr = GOING_ON if config.masking.start else BEGINNING

    def _new(self, documents: Sequence[str]) -> tuple[BertForMaskedLanguageModel, WordPiece]:
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

    def _begun(self, facts: dict[str, Any]) -> tuple[BertForMaskedLanguageModel, WordPiece]:
        """The model and tokenizer of a folder; what is said of the shape must be what it is."""
        config, section = self.config, self.config.model
        if config.masking.vocabulary != default_of(PretrainConfig, ("masking", "vocabulary")):
            raise UserError("--vocabulary is for a new BERT: the one of --from has its own vocabulary.")
        folder = find_bert(str(config.masking.start)).resolve()
        tokenizer = WordPiece.from_pretrained(folder)
        model = BertForMaskedLanguageModel.from_pretrained(folder, **self._changes())
        has = model.config
        for name in ("layers", "heads", "width"):
            if name in section.model_fields_set and getattr(section, name) != getattr(has, name):
                raise UserError(f"--{name} {getattr(section, name)}: {folder} has {getattr(has, name)}: leave it out.")
            setattr(section, name, getattr(has, name))
        if "context" not in section.model_fields_set:
            section.context = min(section.context, has.context)
        if section.context > has.context:
            raise UserError(f"--context {section.context} is more than the {has.context} positions of {folder}.")
        config.masking.start = str(folder)
        facts |= {"start": str(folder), "start_sha256": fingerprint(folder)}
        if model.weight_report is not None and (told := model.weight_report.sentence()):
            facts["start_weights"] = told  # a head built anew has much to learn: said once, and kept
        return model, tokenizer

    def _changes(self) -> dict[str, Any]:
        """What the section of the model says besides the size."""
        section = self.config.model
        said: dict[str, Any] = {name: getattr(section, name) for name in ("activation", "tied")}
        said |= {"dropout": section.dropout, "attention_dropout": section.dropout}
        if section.attention != default_of(PretrainConfig, ("model", "attention")):
            said["attention"] = section.attention
        return {name: value for name, value in said.items() if value is not None}

    def _rows(self, documents: Sequence[str], tokenizer: WordPiece) -> MaskedRows:
        """Long documents are several rows: nothing is left out."""
        config = self.config
        rows = [row for text in documents for row in blocks(text, tokenizer, config.model.context)]
        settings = config.masking
        masking = Masking(tokenizer, settings.share, whole_words=settings.whole_words, seed=config.training.seed)
        return MaskedRows(rows, masking)

    def _files(self) -> dict[str, str]:
        own = self.config.model.attention
        return {"attention.py": Path(own).read_text(encoding="utf-8")} if own.endswith(".py") else {}


@dataclass
class TrainedBert:
    """The BERT of a run with its tokenizer."""

    run: Path
    model: BertForMaskedLanguageModel
    tokenizer: WordPiece


def load_bert(run: Path) -> TrainedBert:
    """The model in RUN/model, which a finished run has."""
    folder = run / "model"
    if not folder.is_dir():
        raise UserError(f"{run} has no model yet: let it finish, or resume it with 'attnlab resume {run}'.")
    return TrainedBert(run, BertForMaskedLanguageModel.from_pretrained(folder), WordPiece.from_pretrained(folder))


def score(rows: MaskedRows, device: str) -> Evaluate:
    """Loss and accuracy over all masked pieces of a set; the same pieces are masked every time."""
    batches = Batches(rows, BatchPlan(rows.lengths))

    @torch.no_grad()
    def evaluate(model: nn.Module) -> dict[str, float]:
        loss = right = count = 0.0
        for batch in batches.once():
            inputs = batch.to(torch.device(device)).inputs
            targets = inputs["labels"][inputs["labels"] != IGNORE]  # (M,)
            output = model(**inputs)
            loss += float(output.loss) * targets.numel()
            right += float((output.masked_logits.argmax(-1) == targets).sum())
            count += targets.numel()
        return {"loss": loss / max(1.0, count), "accuracy": right / max(1.0, count)}

    return evaluate
