"""A GPT from settings or from a run folder, with its vocabulary and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attnlab.attention.class_source import class_text
from attnlab.attention.registry import handed_in
from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.gpt import GPTSection
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT, make_gpt
from attnlab.runs import read_config, read_record
from attnlab.runs.checkpoints import load_best
from attnlab.runs.own_attention import TEXT, own_attention


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
    section.attention = own_attention(run, section.attention)
    _same_class(section.attention, run)
    model = make_gpt(section, vocabulary)
    if weights:
        load_best(model, run)
    return TrainedGPT(run, model, vocabulary, section)


def _same_class(name: str, run: Path) -> None:
    """Refuse weights that were trained with another version of a class handed in from Python."""
    build, file = handed_in(name), run / TEXT
    if build is not None and file.is_file() and class_text(build) != file.read_text(encoding="utf-8"):
        raise UserError(f"{name} has changed since {run} was trained with it: {file} is the version of the run.")
