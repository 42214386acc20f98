"""A GPT from settings or from a run folder, with its vocabulary and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.gpt import GPTSection
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT, make_gpt
from attnlab.runs import read_config, read_record
from attnlab.runs.checkpoints import load_best


@dataclass
class TrainedGPT:
    """The GPT of a run with its vocabulary."""

    run: Path
    model: GPT
    vocabulary: Vocabulary
    section: GPTSection


GPT_RUNS = ("pretrain", "finetune", "language")


def load_gpt(run: Path, weights: bool = True) -> TrainedGPT:
    """The model of a run: the best weights on dev, else the last; or new ones. Of a chain, the fine-tuned one."""
    kind = read_record(run)["kind"]
    if kind == "knowledge":
        return load_gpt(run / "finetune", weights)
    if kind not in GPT_RUNS:
        raise UserError(f"{run} is a {kind} run: it has no language model.")
    if not (run / "vocabulary.json").is_file():
        raise UserError(
            f"{run} is a BERT trained on masked words, not a GPT: use it with 'classify --model {run}/model'."
        )
    vocabulary = Vocabulary.read(run / "vocabulary.json")
    section = check(GPTSection, read_config(run)["model"])
    _same_attention(section, run)
    model = make_gpt(section, vocabulary)
    if weights:
        load_best(model, run)
    return TrainedGPT(run, model, vocabulary, section)


def _same_attention(section: GPTSection, run: Path) -> None:
    """Refuse weights that were trained with another version of a user's own attention."""
    copy, current = run / "attention.py", Path(section.attention)
    if copy.is_file() and current.is_file() and current.read_text(encoding="utf-8") != copy.read_text(encoding="utf-8"):
        raise UserError(f"{current} has changed since {run} was trained with it: {copy} is the version of the run.")
