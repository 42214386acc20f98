"""A folder with a pretrained model: whether it is complete, and what it contains, without loading the model.

A safetensors file begins with the length of a JSON header (8 bytes, little-endian) and the header:
{"name": {"dtype": "F32", "shape": [...], "data_offsets": [from, to]}, ...}; offsets count from the header's end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base.errors import UserError, first_line
from attnlab.base.files import read_json, read_text
from attnlab.base.hub import card

SAFE, SAFE_INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
LONGEST_HEADER = 100_000_000
SENTENCEPIECE = ("spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", *SENTENCEPIECE)
"""Each of these is a tokenizer; the first one of this list that exists is read."""
EMBEDDINGS = ("word_embeddings.weight", "shared.weight", "embed_tokens.weight", "wte.weight")
MASKED = "head of masked words"
HEADS = {
    MASKED: ("cls.predictions.transform.", "lm_head.dense.", "vocab_transform.", "lm_predictions."),
    "next-sentence head": ("cls.seq_relationship.",),
    "language head of its own": ("lm_head.weight",),
    "classifier": ("classifier.", "pre_classifier."),
}
LAYERS = ("num_hidden_layers", "n_layers", "num_layers", "n_layer", "num_decoder_layers")
MOST_LAYERS = 1000  # where only a pickle has the weights
OFFSET = ("roberta", "mpnet", "xlm-roberta", "camembert")
"""Families that count positions from the padding id on: two rows of their table belong to no position."""
Shapes = dict[str, tuple[int, ...]]


class ModelFiles(NamedTuple):
    """What was read to check a folder."""

    config: dict[str, Any]
    shapes: Shapes | None
    """None for a pickle, which is not opened for a check."""
    tokens: int
    vocabulary: int | None
    """Rows of the table of word vectors."""


def check_model(folder: Path) -> ModelFiles:
    """Refuse a folder that is incomplete, or whose tokenizer has tokens without a vector in the weights."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: give one with config.json, weights and tokenizer in it.")
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(f"{folder} has no config.json: give the folder of a pretrained model.")
    config = read_json(path)
    shapes = shapes_in(folder)
    _check_layers(path, config, shapes)
    tokens = count_tokens(folder)
    rows = next((shape[0] for name, shape in (shapes or {}).items() if shape and name.endswith(EMBEDDINGS)), None)
    vocabulary = rows if rows is not None else config.get("vocab_size")
    if isinstance(vocabulary, int) and tokens > vocabulary:
        raise UserError(
            f"the tokenizer in {folder} has {tokens:,} tokens, the weights have {vocabulary:,}: "
            "tokenizer and model are not from the same checkpoint."
        )
    return ModelFiles(config, shapes, tokens, vocabulary)


def _check_layers(path: Path, config: dict[str, Any], shapes: Shapes | None) -> None:
    """Every layer has weights: a number of layers that nobody means would be built until the memory is full."""
    most = MOST_LAYERS if shapes is None else len(shapes)
    for name in LAYERS:
        layers = config.get(name)
        if isinstance(layers, int | float) and layers > most:
            raise UserError(f"{path}: {name} is {layers:,}, and the weights are those of fewer layers: fetch it again.")


def describe(folder: Path) -> dict[str, Any]:
    """Facts about a model without its weights in memory; None where its files do not contain one."""
    config, shapes, tokens, vocabulary = check_model(folder)
    files = weight_files(folder)
    if shapes is None:
        shapes = pickled_shapes(folder / PICKLED)
    parts = _parts(shapes)
    encoder = None if config.get("is_encoder_decoder") else parts
    return {
        "folder": str(folder),
        "family": model_type(config),
        "layers": _first(config, *LAYERS[:-1]),
        "decoder layers": config.get(LAYERS[-1]),
        "width": _first(config, "hidden_size", "dim", "d_model", "n_embd"),
        "heads": _first(config, "num_attention_heads", "n_heads", "num_heads", "n_head"),
        "vocabulary": vocabulary,
        "tokens": tokens,
        "longest input": _longest(config),
        "parameters": count_parameters(shapes),
        "pooler": None if encoder is None else "pooler" in encoder,
        MASKED: None if encoder is None else MASKED in encoder,
        "other heads": [part for part in parts if part not in ("pooler", MASKED)],
        "weights": [path.name for path in files],
        "megabytes": round(sum(path.stat().st_size for path in files) / 1e6, 1),
        "licence": _licence(folder),
    }


def _licence(folder: Path) -> str | None:
    licence = card(folder).get("license")
    return licence if isinstance(licence, str) else None


def model_type(config: dict[str, Any]) -> str | None:
    """`model_type`; the first BERTs on the hub were saved without it, and have segments."""
    return config.get("model_type") or ("bert" if "type_vocab_size" in config else None)


def refuse_code(folder: Path, config: Mapping[str, Any], known: Container[str]) -> None:
    """Refuse a model that is not among the `known` families, or that would fetch code: only data is read."""
    family = config["model_type"] if "model_type" in config else model_type(dict(config))
    if config.get("auto_map") and family not in known:
        raise UserError(
            f"{folder} needs code of its own (auto_map in config.json), and the lab runs no code of a model's folder: "
            "use a model of a family that transformers has."
        )
    for name, value in _entries(config):
        if name.endswith(("attn_implementation", "experts_implementation")) and "/" in str(value):
            raise UserError(f"{folder / 'config.json'}: {name} names code to fetch, {value!r}: remove this line.")


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its value, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name), inner
            yield from _entries(inner)


def _first(config: dict[str, Any], *names: str) -> Any:
    return next((config[name] for name in names if config.get(name) is not None), None)


def _longest(config: dict[str, Any]) -> int | str | None:
    """In tokens, special ones included."""
    positions = _first(config, "max_position_embeddings", "n_positions")
    if config.get("model_type") in ("t5", "mt5", "umt5"):
        return f"any (relative positions{f', trained on {positions}' if positions else ''})"
    return positions - 2 if isinstance(positions, int) and config.get("model_type") in OFFSET else positions


def _parts(shapes: Shapes) -> list[str]:
    """Pooler and heads that are in a file."""
    pooler = ["pooler"] if any("pooler." in name for name in shapes) else []
    return pooler + [part for part, starts in HEADS.items() if any(name.startswith(starts) for name in shapes)]


def weight_files(folder: Path) -> list[Path]:
    """The files with the weights, all existing: one safetensors, its parts by their index, or a pytorch_model.bin."""
    if (folder / SAFE).is_file():
        return [folder / SAFE]
    index = folder / SAFE_INDEX
    if index.is_file():
        parts = read_json(index).get("weight_map")
        if not isinstance(parts, dict) or not parts:
            raise UserError(f"{index} names no files: fetch it again.")
        paths = [folder / Path(str(part)).name for part in dict.fromkeys(parts.values())]
        if missing := [path.name for path in paths if not path.is_file()]:
            raise UserError(f"{folder} lacks {missing[0]}, which {SAFE_INDEX} names: fetch the model again.")
        return paths
    if (folder / PICKLED).is_file():
        return [folder / PICKLED]
    raise UserError(f"{folder} has no weights: expected a {SAFE} (or its parts) or a {PICKLED}.")


def read_shapes(path: Path) -> Shapes:
    """Names and shapes in a safetensors file, whose size must match its header."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header: dict[str, Any] = json.loads(file.read(length)) if 2 <= length <= LONGEST_HEADER else {}
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        shapes = {name: tuple(map(int, entry["shape"])) for name, entry in tensors.items()}
        end = 8 + length + max(int(entry["data_offsets"][1]) for entry in tensors.values())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise UserError(f"{path} is no safetensors file, or only a part of one: fetch it again.") from None
    if path.stat().st_size != end:
        raise UserError(f"{path}: expected {end:,} bytes, got {path.stat().st_size:,}: fetch it again.")
    return shapes


def shapes_in(folder: Path) -> Shapes | None:
    """Names and shapes of all weights; None where only a pickle has them, which needs torch to open."""
    files = weight_files(folder)
    if files[0].name == PICKLED:
        return None
    return {name: shape for path in files for name, shape in read_shapes(path).items()}


def pickled_shapes(path: Path) -> Shapes:
    """Names and shapes in a pytorch_model.bin, unpickled as tensors without memory; code in it is refused."""
    import torch

    try:
        tensors = torch.load(path, map_location="meta", weights_only=True)
        return {str(name): tuple(tensor.shape) for name, tensor in tensors.items()}
    except Exception as error:  # pickle's own errors share no base class
        raise UserError(f"{path} cannot be read as weights ({why_not_read(error)}): fetch it again.") from None


def why_not_read(error: BaseException) -> str:
    """The reason of a library in a few words; of a pickle that torch refuses, what it holds."""
    if str(error).startswith("Weights only load failed"):
        return "it is a pickle with something else than tensors in it, which could execute code"
    return first_line(error)


def count_parameters(shapes: Shapes) -> int:
    """Old files also store the positions 0, 1, 2 …, which are no parameters."""
    return sum(math.prod(shape) for name, shape in shapes.items() if not name.endswith("position_ids"))


def count_tokens(folder: Path) -> int:
    """One more than the largest token id, from the tokenizer's files alone."""
    path = next((folder / name for name in TOKENIZERS if (folder / name).is_file()), None)
    if path is None:
        raise UserError(f"{folder} has no tokenizer: expected a {', '.join(TOKENIZERS[:-1])} or {TOKENIZERS[-1]}.")
    try:
        if path.name == "tokenizer.json":
            return _tokens_in_json(read_json(path))
        if path.name == "vocab.txt":
            tokens = len(read_text(path).removesuffix("\n").split("\n"))
        elif path.name == "vocab.json":
            tokens = 1 + max(read_json(path).values())
        else:
            tokens = _sentencepieces(path.read_bytes())
        added = folder / "added_tokens.json"
        return max(tokens, *(1 + number for number in read_json(added).values())) if added.is_file() else tokens
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise UserError(f"{path} is no tokenizer file: fetch it again.") from None


def _tokens_in_json(tokenizer: dict[str, Any]) -> int:
    """A vocabulary is {token: id}, or of a unigram model a list in order."""
    vocabulary = tokenizer["model"]["vocab"]
    tokens = len(vocabulary) if isinstance(vocabulary, list) else 1 + max(vocabulary.values())
    return max([tokens, *(1 + added["id"] for added in tokenizer.get("added_tokens") or [])])


def _sentencepieces(content: bytes) -> int:
    """The number of pieces in a SentencePiece model: a protobuf message with one field 1 per piece."""
    position = pieces = 0
    while position < len(content):
        key, position = _varint(content, position)
        field, kind = key >> 3, key & 7
        if kind == 2:  # a length, then so many bytes
            length, position = _varint(content, position)
            position += length
            pieces += field == 1
        elif kind == 0:
            _, position = _varint(content, position)
        else:
            position += {1: 8, 5: 4}[kind]
    if position != len(content) or not pieces:
        raise ValueError("cut short")
    return pieces


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """A number in 7 bits per byte, the least significant first, and the position after it."""
    value = shift = 0
    while True:
        byte = content[position]
        value, shift, position = value | (byte & 127) << shift, shift + 7, position + 1
        if byte < 128:
            return value, position
