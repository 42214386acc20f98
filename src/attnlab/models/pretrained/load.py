"""From the name of a model to a classifier with its tokenizer, both from the same folder."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from attnlab.base.errors import UserError, first_line
from attnlab.base.machine.peak import is_out_of_memory
from attnlab.data.tokenizers.wordpiece_files import read_json
from attnlab.models.pretrained.classifier import Classifier, Head
from attnlab.models.pretrained.families import Family, family_of
from attnlab.models.pretrained.fast_encoder import quicken
from attnlab.models.pretrained.folder import model_type
from attnlab.models.pretrained.label_words import LabelWords
from attnlab.models.pretrained.source import model_folder

POOLINGS = ("auto", "pooler", "first", "mean", "last")
HEADS = ("auto", "linear", "dense", "words")


@dataclass(frozen=True)
class Loaded:
    """A classifier before it is tuned, and what goes with it."""

    model: Classifier | LabelWords
    tokenizer: Any
    folder: Path
    longest: int
    """Tokens the model can read."""
    notes: list[str] = field(default_factory=list)
    """What was decided or missing, a sentence each."""


def load_classifier(
    name: str, classes: Sequence[str], pooling: str = "auto", head: str = "auto", dropout: float = 0.1
) -> Loaded:
    """The model with pretrained body and new head."""
    transformers = import_transformers()
    folder = model_folder(name)
    config = load_config(transformers, folder)
    tokenizer = load_tokenizer(transformers, folder, config)
    if tokenizer.pad_token is None:  # GPT-2: the end of a text fills up as well, since it is masked
        tokenizer.pad_token = tokenizer.eos_token
    notes: list[str] = []
    if head == "words":
        model: Classifier | LabelWords = _label_words(transformers, folder, config, tokenizer, classes, pooling)
    else:
        body, missing = _load_body(transformers, folder, config)
        notes += _too_few(tokenizer, body, name)
        quicken(body)
        family = _chosen(folder, config, family_of(config.model_type), bool(missing), pooling, head)
        if family.pooling == "pooler" and missing:
            notes.append(f"{name} has no pooler: a new one learns with the head.")
        if family.pooling != "pooler" and getattr(body, "pooler", None) is not None:
            del body.pooler  # weights that would never learn
            body.register_module("pooler", None)
        model = Classifier(body, Head(_width(config), len(classes), dropout, family.activation), family.pooling)
        if family.pooling == "pooler" and missing:
            model.new_pooler = True
    return Loaded(model, tokenizer, folder, _longest(config, tokenizer), notes)


def load_config(transformers: Any, folder: Path) -> Any:
    """What transformers makes of config.json, of those too that do not say which family they are of."""
    said = read_json(folder / "config.json")
    with reading(folder, "config.json"):
        if "model_type" in said or model_type(said) is None:
            return transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        return transformers.AutoConfig.for_model(model_type(said), **said)


def load_tokenizer(transformers: Any, folder: Path, config: Any = None) -> Any:
    """What transformers makes of the tokenizer's files."""
    with reading(folder, "its tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(folder, config=config, local_files_only=True)


def _load_body(transformers: Any, folder: Path, config: Any) -> tuple[nn.Module, list[str]]:
    """The encoder, and which of its weights the folder lacks: a pooler may, nothing else."""
    kind = transformers.AutoModelForTextEncoding if config.is_encoder_decoder else transformers.AutoModel
    with reading(folder, "its encoder"):
        body, report = kind.from_pretrained(folder, config=config, local_files_only=True, output_loading_info=True)
    missing = sorted(report["missing_keys"])
    if other := [name for name in missing if not name.startswith("pooler.")]:
        raise UserError(
            f"--model: the weights in {folder} lack {other[0]}"
            f"{f' and {len(other) - 1} more' if len(other) > 1 else ''}: they are not those of its config.json."
        )
    return body, missing


def _too_few(tokenizer: Any, body: Any, name: str) -> list[str]:
    """Tables are filled up to round numbers; a tenth of rows without a token says more (a tokenizer with too many
    tokens was refused before)."""
    tokens, rows = len(tokenizer), body.get_input_embeddings().num_embeddings
    if tokens > 0.9 * rows:
        return []
    return [
        f"the tokenizer of {name} has {tokens:,} tokens, the weights have {rows:,}: are they from the same checkpoint?"
    ]


def _chosen(folder: Path, config: Any, own: Family, no_pooler: bool, pooling: str, head: str) -> Family:
    """What is asked for; 'auto' is how the model was trained to be read, else the family's own way."""
    how, activation = pooling, own.activation
    if how == "auto":
        how = _trained_pooling(folder) or own.pooling
        if how == "pooler" and no_pooler:
            how = "mean"  # a new pooler has nothing pretrained to offer: the mean learns faster
    if how == "pooler" and own.pooling != "pooler":
        raise UserError(f"--pooling: a {config.model_type} model has no pooler: use first or mean.")
    if head == "linear" or (head == "auto" and how != own.pooling):
        activation = None
    elif head == "dense":
        activation = own.activation or "tanh"
    return Family(how, activation)


def _trained_pooling(folder: Path) -> str | None:
    """Models for sentence vectors say in a file of their own how these are made."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return None
    said = json.loads(path.read_text(encoding="utf-8"))
    return "mean" if said.get("pooling_mode_mean_tokens") else "first" if said.get("pooling_mode_cls_token") else None


def _label_words(
    transformers: Any, folder: Path, config: Any, tokenizer: Any, classes: Sequence[str], pooling: str
) -> LabelWords:
    if not config.is_encoder_decoder:
        raise UserError(f"--head words: {folder.name} is a {config.model_type} model and cannot say words: use T5.")
    if pooling != "auto":
        raise UserError("--pooling: a model that answers with words makes no vector of a text: leave it out.")
    with reading(folder, "its weights"):
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True)
    words = [tokenizer(name)["input_ids"] for name in classes]
    if len({tuple(word) for word in words}) < len(words):
        raise UserError(f"--head words: the model cannot tell the classes {', '.join(classes)} apart as words.")
    return LabelWords(model, words)


def _width(config: Any) -> int:
    return int(getattr(config, "hidden_size", None) or config.d_model)


def _longest(config: Any, tokenizer: Any) -> int:
    """The longest input: what the tokenizer says, or the positions there are; relative positions have no end."""
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if config.model_type in ("t5", "mt5"):
        positions = None
    elif positions is not None and config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= config.pad_token_id + 1  # these begin to count behind the number of the padding
    return min(positions or 2**20, tokenizer.model_max_length or 2**20)


def import_transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise UserError("classification needs transformers: pip install 'attnlab[hub]'.") from None
    return transformers


@contextlib.contextmanager
def reading(folder: Path, what: str) -> Iterator[None]:
    """Whatever a library throws at a file that a person gave becomes one sentence."""
    try:
        with quietly():
            yield
    except Exception as error:  # those of tokenizers have no class of their own
        if is_out_of_memory(error):
            raise
        raise UserError(
            f"--model: {folder}: {what} cannot be loaded ({first_line(error)}): fetch the whole folder again."
        ) from None


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Loading prints bars and reports of its own; what matters is said by the lab."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()
