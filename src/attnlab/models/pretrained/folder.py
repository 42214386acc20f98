"""A folder with a pretrained model in it: whether it is whole, and what it says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base.errors import UserError
from attnlab.base.hub import card
from attnlab.data.tokenizers.wordpiece_files import read_json
from attnlab.models.pretrained.vocabulary import count_tokens
from attnlab.models.pretrained.weights import PICKLED, Shapes, count, pickled_shapes, shapes_in, weight_files

EMBEDDINGS = ("word_embeddings.weight", "shared.weight", "embed_tokens.weight", "wte.weight")
MASKED = "head of masked words"
HEADS = {
    MASKED: ("cls.predictions.transform.", "lm_head.dense.", "vocab_transform.", "lm_predictions."),
    "next-sentence head": ("cls.seq_relationship.",),
    "language head of its own": ("lm_head.weight",),
    "classifier": ("classifier.", "pre_classifier."),
}
OFFSET = ("roberta", "mpnet", "xlm-roberta", "camembert")
"""Families that count positions from the padding's number on: two rows of their table are for no position."""


class Checked(NamedTuple):
    """What was read to check a folder."""

    config: dict[str, Any]
    shapes: Shapes | None
    """None for a pickle, which is not opened for a check."""
    tokens: int
    vocabulary: int | None
    """Rows of the table of word vectors."""


def check_model(folder: Path) -> Checked:
    """Refuse a folder that is not whole, or whose tokenizer names tokens the weights have no vector for."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: give one with config.json, weights and tokenizer in it.")
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(f"{folder} has no config.json: give the folder of a pretrained model.")
    config = read_json(path)
    shapes = shapes_in(folder)
    tokens = count_tokens(folder)
    rows = next((shape[0] for name, shape in (shapes or {}).items() if name.endswith(EMBEDDINGS)), None)
    vocabulary = rows if rows is not None else config.get("vocab_size")
    if isinstance(vocabulary, int) and tokens > vocabulary:
        raise UserError(
            f"the tokenizer in {folder} has {tokens:,} tokens, the weights have {vocabulary:,}: "
            "tokenizer and model are not from the same checkpoint."
        )
    return Checked(config, shapes, tokens, vocabulary)


def describe(folder: Path) -> dict[str, Any]:
    """What there is to know about a model without its weights in memory; None where its files do not say."""
    config, shapes, tokens, vocabulary = check_model(folder)
    files = weight_files(folder)
    if shapes is None:
        shapes = pickled_shapes(folder / PICKLED)
    parts = _parts(shapes)
    encoder = None if config.get("is_encoder_decoder") else parts
    return {
        "folder": str(folder),
        "family": model_type(config),
        "layers": _first(config, "num_hidden_layers", "n_layers", "num_layers", "n_layer"),
        "decoder layers": config.get("num_decoder_layers"),
        "width": _first(config, "hidden_size", "dim", "d_model", "n_embd"),
        "heads": _first(config, "num_attention_heads", "n_heads", "num_heads", "n_head"),
        "vocabulary": vocabulary,
        "tokens": tokens,
        "longest input": _longest(config),
        "parameters": count(shapes),
        "pooler": None if encoder is None else "pooler" in encoder,
        MASKED: None if encoder is None else MASKED in encoder,
        "other heads": [part for part in parts if part not in ("pooler", MASKED)],
        "weights": [path.name for path in files],
        "megabytes": round(sum(path.stat().st_size for path in files) / 1e6, 1),
        "licence": card(folder).get("license"),
    }


def model_type(config: dict[str, Any]) -> str | None:
    """`model_type`; the first BERTs on the hub were saved without it, and have segments."""
    return config.get("model_type") or ("bert" if "type_vocab_size" in config else None)


def _first(config: dict[str, Any], *names: str) -> Any:
    return next((config[name] for name in names if config.get(name) is not None), None)


def _longest(config: dict[str, Any]) -> int | str | None:
    """In tokens, special ones included."""
    places = _first(config, "max_position_embeddings", "n_positions")
    if config.get("model_type") in ("t5", "mt5", "umt5"):
        return f"any (relative positions{f', trained on {places}' if places else ''})"
    return places - 2 if isinstance(places, int) and config.get("model_type") in OFFSET else places


def _parts(shapes: Shapes) -> list[str]:
    """Pooler and heads that are in a file."""
    found = ["pooler"] if any("pooler." in name for name in shapes) else []
    return found + [part for part, starts in HEADS.items() if any(name.startswith(starts) for name in shapes)]
