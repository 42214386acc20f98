"""From the name of a model to a classifier with its tokenizer, both from the same folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attnlab.base.errors import UserError
from attnlab.base.files import read_json
from attnlab.base.machine.facts import is_out_of_memory
from attnlab.models.pretrained.classifier import Classifier, Head
from attnlab.models.pretrained.families import Family, family_of
from attnlab.models.pretrained.fast_encoder import OFF, exchange_layers
from attnlab.models.pretrained.folder import model_type, refuse_code, why_not_read
from attnlab.models.pretrained.label_words import LabelWords
from attnlab.models.pretrained.source import model_folder

POOLINGS = ("auto", "pooler", "first", "mean", "last")
HEADS = ("auto", "linear", "dense", "words")
AS_DATA: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""How transformers opens a folder: nothing is fetched, no code of the folder is run, and no question is asked."""


@dataclass(frozen=True)
class LoadedClassifier:
    """A classifier before it is tuned, with its tokenizer."""

    model: Classifier | LabelWords
    tokenizer: Any
    folder: Path
    longest: int
    """Tokens the model can read."""
    notes: list[str] = field(default_factory=list)
    """What was missing or chosen automatically, one sentence each."""
    fast_encoder: str = OFF
    """Which layers of the body were exchanged for faster ones."""


def load_classifier(
    name: str,
    classes: Sequence[str],
    pooling: str = "auto",
    head: str = "auto",
    dropout: float = 0.1,
    fast: bool = True,
) -> LoadedClassifier:
    """A model with pretrained body and new head; `fast` exchanges the body's dropout and attention (CPU)."""
    folder = model_folder(name)
    with reading(folder, "the model"):
        return _load_classifier(name, folder, classes, pooling, head, dropout, fast)


def _load_classifier(
    name: str, folder: Path, classes: Sequence[str], pooling: str, head: str, dropout: float, fast: bool
) -> LoadedClassifier:
    transformers = import_transformers()
    config = load_config(transformers, folder)
    tokenizer = load_tokenizer(transformers, folder, config)
    if tokenizer.pad_token is None:  # GPT-2: any token can fill up, because it is masked
        tokenizer.pad_token = tokenizer.eos_token
    if (getattr(config, "type_vocab_size", None) or 0) < 2:  # a plain tokenizer offers segments to T5 as well
        tokenizer.model_input_names = [name for name in tokenizer.model_input_names if name != "token_type_ids"]
    if head == "words":
        words = _label_words(transformers, folder, config, tokenizer, classes, pooling)
        return LoadedClassifier(words, tokenizer, folder, longest_input(config, tokenizer))
    body, missing = load_encoder(transformers, folder, config)
    notes = _too_few_tokens(tokenizer, body, name)
    exchanged = exchange_layers(body) if fast else OFF
    family = _choose_head(folder, config, family_of(config.model_type), bool(missing), pooling, head)
    if family.pooling == "pooler" and missing:
        notes.append(f"{name} has no pooler: a new one is trained with the head.")
    if family.pooling != "pooler" and getattr(body, "pooler", None) is not None:
        del body.pooler  # weights that would never be trained
        body.register_module("pooler", None)
    model = Classifier(body, Head(_width(config), len(classes), dropout, family.activation), family.pooling)
    model.new_pooler = family.pooling == "pooler" and bool(missing)
    return LoadedClassifier(model, tokenizer, folder, longest_input(config, tokenizer), notes, exchanged)


def exchanged_layers(folder: Path) -> str:
    """What `fast` exchanges in the model of a folder, without its weights in memory."""
    transformers = import_transformers()
    config = load_config(transformers, folder)
    with reading(folder, "its configuration"), torch.device("meta"):
        return exchange_layers(encoder_class(transformers, config).from_config(config, trust_remote_code=False))


def _too_few_tokens(tokenizer: Any, body: Any, name: str) -> list[str]:
    """Tables are padded to round sizes; a tenth of rows without a token is suspicious (a tokenizer with too many
    tokens was refused before)."""
    tokens, rows = len(tokenizer), body.get_input_embeddings().num_embeddings
    if tokens > 0.9 * rows:
        return []
    return [
        f"the tokenizer of {name} has {tokens:,} tokens, the weights have {rows:,}: are they from the same checkpoint?"
    ]


def _choose_head(folder: Path, config: Any, family: Family, no_pooler: bool, pooling: str, head: str) -> Family:
    """Pooling and head as given; 'auto' is the pooling the model was trained with, else that of its family."""
    how, activation = pooling, family.activation
    if how == "auto":
        how = _trained_pooling(folder) or family.pooling
        if how == "pooler" and no_pooler:
            how = "mean"  # a new pooler has no pretrained weights: the mean learns faster
    if how == "pooler" and family.pooling != "pooler":
        raise UserError(f"--pooling: a {config.model_type} model has no pooler: use first or mean.")
    if head == "linear" or (head == "auto" and how != family.pooling):
        activation = None
    elif head == "dense":
        activation = family.activation or "tanh"
    return Family(how, activation)


def frozen_pooling(name: str) -> str:
    """The vector of a text by a body that is not tuned: as it was trained for, else the mean, which carries most."""
    return _trained_pooling(model_folder(name)) or "mean"


def _trained_pooling(folder: Path) -> str | None:
    """Models for sentence vectors have a file of their own for the pooling they were trained with."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return None
    modes = read_json(path)
    return "mean" if modes.get("pooling_mode_mean_tokens") else "first" if modes.get("pooling_mode_cls_token") else None


def _label_words(
    transformers: Any, folder: Path, config: Any, tokenizer: Any, classes: Sequence[str], pooling: str
) -> LabelWords:
    if not config.is_encoder_decoder:
        raise UserError(f"--head words: {folder.name} is a {config.model_type} model and generates no words: use T5.")
    if pooling != "auto":
        raise UserError("--pooling: a model that answers with words does not pool a text into a vector: leave it out.")
    with reading(folder, "its weights"):
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **AS_DATA)
    words = [tokenizer(name)["input_ids"] for name in classes]
    if len({tuple(word) for word in words}) < len(words):
        raise UserError(f"--head words: two of the classes {', '.join(classes)} are the same tokens for the model.")
    return LabelWords(model, words)


def _width(config: Any) -> int:
    return int(getattr(config, "hidden_size", None) or config.d_model)


def longest_input(config: Any, tokenizer: Any) -> int:
    """The longest input by tokenizer and position table; relative positions have no limit."""
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if config.model_type in ("t5", "mt5"):
        positions = None
    elif positions is not None and config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= config.pad_token_id + 1  # these count positions from the padding id on
    return min(positions or 2**20, tokenizer.model_max_length or 2**20)


def import_transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise UserError("classification needs transformers: pip install 'attnlab[hub]'.") from None
    return transformers


def load_config(transformers: Any, folder: Path) -> Any:
    """transformers' configuration from config.json, also from one that does not name its family."""
    content = read_json(folder / "config.json")
    refuse_code(folder, content, transformers.CONFIG_MAPPING)
    with reading(folder, "config.json"):
        if "model_type" in content or model_type(content) is None:
            return transformers.AutoConfig.from_pretrained(folder, **AS_DATA)
        return transformers.AutoConfig.for_model(model_type(content), **content)


def load_tokenizer(transformers: Any, folder: Path, config: Any = None) -> Any:
    """transformers' tokenizer from the files of a folder."""
    with reading(folder, "its tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(folder, config=config, **AS_DATA)


def load_encoder(transformers: Any, folder: Path, config: Any) -> tuple[nn.Module, list[str]]:
    """The encoder, and the names of the weights that are missing from the folder: only a pooler may be."""
    kind = encoder_class(transformers, config)
    with reading(folder, "its encoder"):
        body, report = kind.from_pretrained(folder, config=config, output_loading_info=True, **AS_DATA)
    missing = sorted(report["missing_keys"])
    if other := [name for name in missing if not name.startswith("pooler.")]:
        raise UserError(
            f"--model: the weights in {folder} lack {other[0]}"
            f"{f' and {len(other) - 1} more' if len(other) > 1 else ''}: they are not those of its config.json."
        )
    return body, missing


def encoder_class(transformers: Any, config: Any) -> Any:
    half = config.is_encoder_decoder or config.model_type in ("t5", "mt5")  # of which only the encoder may be stored
    return transformers.AutoModelForTextEncoding if half else transformers.AutoModel


@contextlib.contextmanager
def reading(folder: Path, what: str) -> Iterator[None]:
    """Any exception of a library about a user's file becomes one sentence."""
    try:
        with quietly():
            yield
    except UserError:
        raise
    except Exception as error:  # those of tokenizers have no class of their own
        if is_out_of_memory(error):
            raise
        raise UserError(
            f"--model: {folder}: {what} cannot be loaded ({why_not_read(error)}): fetch the whole folder again."
        ) from None


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without transformers' progress bars and reports: the lab prints what matters."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()
