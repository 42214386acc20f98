"""What pretraining and fine-tuning on "Where was X born?" share: the model, its files, its weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.attention import build_mixer
from attnlab.base.errors import UserError
from attnlab.config import check
from attnlab.config.gpt import GPTSection
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT, shape_of
from attnlab.runs import read_config, read_record
from attnlab.runs.checkpoints import load_best


def make_gpt(section: GPTSection, vocabulary: Vocabulary) -> GPT:
    """A new model; a shape that cannot be is told in one sentence."""
    shape = shape_of(section, len(vocabulary))
    build_mixer(shape.attention, shape.mixer())  # refuses a bad variant before four blocks are built
    return GPT(shape)


def model_files(section: GPTSection, vocabulary: Vocabulary) -> dict[str, str]:
    """What must lie beside the weights to understand them: the vocabulary, and a user's own attention.

    The copy of the attention is there to be read and compared; what is run is the file the user names.
    """
    files = {"vocabulary.json": json.dumps(vocabulary.to_dict(), ensure_ascii=False)}
    if section.attention.endswith(".py"):
        files["attention.py"] = Path(section.attention).read_text(encoding="utf-8")
    return files


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
        raise UserError(f"{run} is no GPT: masked words made a BERT of it, for 'attnlab classify --model {run}/model'.")
    vocabulary = Vocabulary.from_dict(json.loads((run / "vocabulary.json").read_text(encoding="utf-8")))
    section = check(GPTSection, read_config(run)["model"])
    _same_attention(section, run)
    model = make_gpt(section, vocabulary)
    if weights:
        load_best(model, run)
    return TrainedGPT(run, model, vocabulary, section)


def _same_attention(section: GPTSection, run: Path) -> None:
    """Weights trained with another version of a user's own attention would be nonsense in this one."""
    copy, own = run / "attention.py", Path(section.attention)
    if copy.is_file() and own.is_file() and own.read_text(encoding="utf-8") != copy.read_text(encoding="utf-8"):
        raise UserError(f"{own} has changed since {run} was trained with it: {copy} is the version it had.")


def data_facts(**values: Any) -> dict[str, Any]:
    """Facts about the data as the record keeps them, without the empty ones."""
    return {name: value for name, value in values.items() if value is not None}
