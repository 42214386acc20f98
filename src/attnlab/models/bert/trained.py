"""The BERT of a run that trained one on masked words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.models.bert.heads import BertForMaskedLanguageModel


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
    return TrainedBert(run, BertForMaskedLanguageModel.from_pretrained(folder), WordPiece.from_pretrained(folder))
