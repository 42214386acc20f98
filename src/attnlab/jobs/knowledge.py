"""What pretraining and fine-tuning on "Where was X born?" share: sections, the model, its answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from attnlab.attention import build_mixer
from attnlab.config import check
from attnlab.data.vocabulary import Vocabulary
from attnlab.errors import UserError
from attnlab.jobs.configs import GPTSection
from attnlab.models.generate import Answer, generate
from attnlab.models.gpt import GPT
from attnlab.runs import read_config, read_record
from attnlab.training.checkpoints import Checkpoints, Damaged, load_weights
from attnlab.training.loop import Evaluate

LONGEST_ANSWER = 40  # tokens: no place's name is longer, in words or in characters
QUESTIONS_AT_ONCE = 256


def make_gpt(section: GPTSection, vocabulary: Vocabulary) -> GPT:
    """A new model; a shape that cannot be is told in one sentence."""
    shape = section.shape(len(vocabulary))
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


def load_gpt(run: Path, weights: bool = True) -> tuple[GPT, Vocabulary, GPTSection]:
    """The model of a run with its vocabulary: the best weights on dev, else the last; or new ones."""
    record = read_record(run)
    if record["kind"] not in ("pretrain", "finetune"):
        raise UserError(f"{run} is a {record['kind']} run: it holds no language model.")
    vocabulary = Vocabulary.from_dict(json.loads((run / "vocabulary.json").read_text(encoding="utf-8")))
    section = check(GPTSection, read_config(run)["model"])
    _same_attention(section, run)
    model = make_gpt(section, vocabulary)
    if weights:
        load_best(model, run)
    return model, vocabulary, section


def _same_attention(section: GPTSection, run: Path) -> None:
    """Weights trained with another version of a user's own attention would be nonsense in this one."""
    copy, own = run / "attention.py", Path(section.attention)
    if copy.is_file() and own.is_file() and own.read_text(encoding="utf-8") != copy.read_text(encoding="utf-8"):
        raise UserError(f"{own} has changed since {run} was trained with it: {copy} is the version it had.")


def load_best(model: nn.Module, run: Path) -> None:
    """Put a run's best weights on dev into `model`, or the last ones if nothing was evaluated."""
    checkpoints = Checkpoints(run / "checkpoints")
    try:
        found = checkpoints.best() or checkpoints.newest()
    except Damaged as damage:
        raise UserError(f"{run}: its best checkpoint is damaged ({damage}).") from None
    if found is None:
        raise UserError(f"{run} has no checkpoint yet: let it train, or go on with 'attnlab resume {run}'.")
    try:
        load_weights(model, found.tensors["model"])
    except ValueError as error:
        raise UserError(f"{run}: {error}.") from None


def answer(model: GPT, vocabulary: Vocabulary, questions: Sequence[str]) -> list[tuple[str, float]]:
    """What the model says to each question, and the mean log-probability it gives that."""
    prompts = [[*vocabulary.encode(question), vocabulary.mask] for question in questions]
    answers: list[Answer] = []
    for start in range(0, len(prompts), QUESTIONS_AT_ONCE):
        part = prompts[start : start + QUESTIONS_AT_ONCE]
        answers += generate(model, part, LONGEST_ANSWER, stop=vocabulary.mask)
    return [(vocabulary.decode(each.tokens), each.log_probability) for each in answers]


def score(predicted: Sequence[str], pairs: Sequence[tuple[str, str]]) -> float:
    """The share of questions answered to the letter."""
    right = sum(said == expected for said, (_, expected) in zip(predicted, pairs, strict=True))
    return right / max(1, len(pairs))


def share_right(vocabulary: Vocabulary, pairs: Sequence[tuple[str, str]]) -> Evaluate:
    """Measure while training: the share of these questions the model answers right."""

    def evaluate(trained: nn.Module) -> dict[str, float]:
        model = trained if isinstance(trained, GPT) else trained.module
        assert isinstance(model, GPT)
        said = answer(model, vocabulary, [question for question, _ in pairs])
        return {"accuracy": score([text for text, _ in said], pairs)}

    return evaluate


def most_common(train: Sequence[tuple[str, str]]) -> str:
    """What a model without knowledge should answer to everything: the most common place in training."""
    counts: dict[str, int] = {}
    for _, place in train:
        counts[place] = counts.get(place, 0) + 1
    return max(counts, key=lambda place: (counts[place], place))


def data_facts(**values: Any) -> dict[str, Any]:
    """Facts about the data as the record keeps them, without the empty ones."""
    return {name: value for name, value in values.items() if value is not None}
