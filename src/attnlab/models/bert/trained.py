"""The BERT of a run that trained one on masked words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attnlab.attention.registry import OWN
from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.heads import BertForMaskedLanguageModel
from attnlab.runs.own_attention import own_attention
from attnlab.runs.settings import trained_config


@dataclass
class TrainedBert:
    """The BERT of a run with its tokenizer."""

    run: Path
    model: BertForMaskedLanguageModel
    tokenizer: WordPiece


def load_bert(run: Path) -> TrainedBert:
    """The model in RUN/model; raises if the run is not finished."""
    folder = run / "model"
    if not folder.is_dir():
        raise UserError(f"{run} has no model yet: wait until it finishes, or resume it with 'attnlab resume {run}'.")
    name = own_attention(run, check(PretrainConfig, trained_config(run)).model.attention)
    own = {"attention": name} if name.endswith(".py") or name.startswith(OWN) else {}
    model = BertForMaskedLanguageModel.from_pretrained(folder, **own)
    return TrainedBert(run, model, WordPiece.from_pretrained(folder))
