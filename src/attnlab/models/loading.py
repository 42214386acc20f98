"""A GPT from settings or from a run folder, with its vocabulary and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attnlab.attention.class_source import class_text
from attnlab.attention.registry import handed_in
from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.gpt import GPTSection
from attnlab.config.pretrain import MASKED_WORDS
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT, make_gpt
from attnlab.runs import read_config, read_record
from attnlab.runs.checkpoints import load_best
from attnlab.runs.own_attention import TEXT, own_attention
from attnlab.runs.settings import must_be_unchanged, trained_config


@dataclass
class TrainedGPT:
    """The GPT of a run with its vocabulary."""

    run: Path
    model: GPT
    vocabulary: Vocabulary
    section: GPTSection


GPT_RUNS = ("pretrain", "finetune", "language")
VOCABULARY = "vocabulary.json"


def load_gpt(run: Path, weights: bool = True) -> TrainedGPT:
    """The model of a run: the best weights on dev, else the last; or new ones. Of a chain, the fine-tuned one."""
    kind = read_record(run)["kind"]
    if kind == "knowledge":
        return load_gpt(run / "finetune", weights)
    if kind not in GPT_RUNS:
        raise UserError(f"{run} is a {kind} run: it has no language model.")
    if trains_bert(run):
        raise UserError(
            f"{run} is a BERT trained on masked words, not a GPT: use it with 'classify --model {run}/model'."
        )
    vocabulary = Vocabulary.read(must_be_unchanged(run, VOCABULARY))
    section = check(GPTSection, trained_config(run).get("model") or {})
    section.attention = own_attention(run, section.attention)
    _same_class(section.attention, run)
    model = make_gpt(section, vocabulary)
    if weights:
        load_best(model, run)
    return TrainedGPT(run, model, vocabulary, section)


def trains_bert(run: Path) -> bool:
    """Whether a run pretrains a BERT on masked words."""
    objective = read_config(run).get("objective")
    return (
        read_record(run)["kind"] == "pretrain"
        and isinstance(objective, dict)
        and (objective.get("name") == MASKED_WORDS)
    )


def _same_class(name: str, run: Path) -> None:
    """Refuse weights that were trained with another version of a class handed in from Python."""
    build, file = handed_in(name), run / TEXT
    if build is not None and file.is_file() and class_text(build) != file.read_text(encoding="utf-8"):
        raise UserError(f"{name} has changed since {run} was trained with it: {file} is the version of the run.")
