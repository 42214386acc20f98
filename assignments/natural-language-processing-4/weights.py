"""Weights and configuration as files: Hugging Face folders, read and written with the standard library and torch.

A model in a folder is config.json beside model.safetensors (or pytorch_model.bin, read as tensors only: no code in it
is run).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bert import ACTIVATIONS, BertConfig
from errors import UserError, note
from files import read_json, write_json, write_whole

SAFE, PICKLED, CONFIG = "model.safetensors", "pytorch_model.bin", "config.json"
TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
TYPES |= {"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8}
NAMES = (  # ours, transformers'; applied in this order
    ("classification.", ""),
    ("language_model.", ""),
    ("bert.words.", "bert.embeddings.word_embeddings."),
    ("bert.positions.", "bert.embeddings.position_embeddings."),
    ("bert.types.", "bert.embeddings.token_type_embeddings."),
    ("bert.norm.", "bert.embeddings.LayerNorm."),
    ("bert.layers.", "bert.encoder.layer."),
    (".attention.output.", ".attention.output.dense."),
    (".attention.query.", ".attention.self.query."),
    (".attention.key.", ".attention.self.key."),
    (".attention.value.", ".attention.self.value."),
    (".attention_norm.", ".attention.output.LayerNorm."),
    (".wide.", ".intermediate.dense."),
    (".narrow.", ".output.dense."),
    (".mlp_norm.", ".output.LayerNorm."),
)
MASKED_HEAD = {  # of BertForMaskedLanguageModel
    "dense.": "cls.predictions.transform.dense.",
    "norm.": "cls.predictions.transform.LayerNorm.",
    "bias": "cls.predictions.bias",
}
FROM_CLS = "cls"  # in config.json: the classifier reads [CLS]'s last vector, not the pooler's


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Eight bytes: the length n. Then n bytes of JSON, {name: dtype, shape, first and last byte}, then the values."""
    content = memoryview(bytearray(path.read_bytes()))
    tensors: dict[str, Tensor] = {}
    try:
        start = 8 + int.from_bytes(content[:8], "little")
        header, values = json.loads(bytes(content[8:start])), content[start:]
        header.pop("__metadata__", None)
        for name, entry in header.items():
            kind, shape, (first, last) = TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
            if not 0 <= first <= last <= len(values) or last - first != prod(shape) * kind.itemsize:
                raise ValueError(f"{name} is not within the file")
            part = bytearray(values[first:last])
            tensors[name] = torch.frombuffer(part, dtype=kind).view(shape) if part else torch.empty(shape, dtype=kind)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise UserError(f"{path} is not a complete safetensors file ({_short(error)}): fetch it again.") from None
    return tensors


def write_safetensors(path: Path, tensors: dict[str, Tensor]) -> None:
    names = {kind: name for name, kind in TYPES.items()}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts, end = [], 0
    for name, tensor in tensors.items():
        part = bytearray(tensor.numel() * tensor.itemsize)
        if part:
            torch.frombuffer(part, dtype=tensor.dtype).copy_(tensor.detach().flatten())  # writes into `part`
        header[name] = {"dtype": names[tensor.dtype], "shape": [*tensor.shape], "data_offsets": [end, end + len(part)]}
        parts.append(part)
        end += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # values begin at a multiple of 8
    write_whole(path, [len(text).to_bytes(8, "little"), text, *parts])


def read_config(folder: Path, labels: Iterable[str]) -> BertConfig:
    """The configuration in a folder, for a classifier of these classes; raises if it is not one of a BERT."""
    path = folder / CONFIG
    if not path.is_file():
        raise UserError(f"{folder} has no {CONFIG}: give the folder of a BERT.")
    content = read_json(path)
    fixed = {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False}
    fixed |= {"add_cross_attention": False, "tie_word_embeddings": True}
    for name, value in fixed.items():
        if content.get(name, value) != value:
            raise UserError(f"{path}: expected {name} {value!r}, got {content[name]!r}: give the folder of a BERT.")
    found: dict[str, Any] = {}
    for field in fields(BertConfig):
        given: Any = content.get(field.name)
        if given is None or field.name == "labels":
            continue
        if not _fits(field.name, given, field.default):
            raise UserError(f"{path}: expected {field.name} such as {field.default!r}, got {given!r}.")
        found[field.name] = given
    config = BertConfig(**found, labels=tuple(labels))
    if config.hidden_act not in ACTIVATIONS:
        raise UserError(f"{path}: hidden_act is {config.hidden_act!r}: expected one of {', '.join(ACTIVATIONS)}.")
    if config.hidden_size % max(1, config.num_attention_heads):
        raise UserError(f"{path}: {config.num_attention_heads} heads do not divide a width of {config.hidden_size}.")
    return config


def _fits(name: str, given: Any, default: object) -> bool:
    """Whether a value of config.json is of the kind of our default."""
    if isinstance(given, bool):
        return False
    if isinstance(default, int):
        return isinstance(given, int) and (given > 0 or name == "pad_token_id")
    return isinstance(given, int | float if isinstance(default, float) else type(default))


def file_names(model: nn.Module) -> dict[str, Tensor]:
    """Every tensor of a model by its name in transformers' files; what parts of the model share occurs once."""
    named = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in NAMES:
            name = name.replace(ours, theirs)
        for ours, theirs in MASKED_HEAD.items():
            name = theirs + name.removeprefix(ours) if name.startswith(ours) else name
        named[name] = tensor
    return named


def load_weights(model: nn.Module, folder: Path) -> None:
    """Fill a model from a folder. Heads that the folder lacks stay new, and are reported; a body must be complete."""
    weights = dict(_named_as_today(_read_weights(folder)))
    if read_json(folder / CONFIG).get("classify_from") != FROM_CLS:  # a classifier of other vectors or other labels
        weights = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier.")}
    new = []
    for name, target in file_names(model).items():
        if name not in weights:
            if name.startswith("bert."):
                raise UserError(f"the weights in {folder} lack {name}: the file is incomplete, or of another model.")
            new.append(name)
        elif weights[name].shape != target.shape:
            raise UserError(
                f"{name} in {folder} is {tuple(weights[name].shape)}, expected {tuple(target.shape)} by {CONFIG}: "
                "weights and configuration are not from the same checkpoint."
            )
        else:
            target.copy_(weights[name])  # state_dict() shares the parameters' memory
    if new:
        heads = {"classifier": "classifier", "cls": "head of masked words"}
        note(f"{folder}: new, untrained: {', '.join(dict.fromkeys(heads[name.split('.')[0]] for name in new))}.")


def save_model(model: nn.Module, config: BertConfig, folder: Path) -> None:
    """The weights, then config.json, in a form that `transformers` loads.

    A linear layer on last vectors is what it calls token classification: its logits at [CLS] are ours.
    """
    tensors = {name: tensor.cpu() for name, tensor in file_names(model).items()}
    if MASKED_HEAD["bias"] in tensors:  # one bias with two names: versions of transformers differ
        tensors["cls.predictions.decoder.bias"] = tensors[MASKED_HEAD["bias"]]
    write_safetensors(folder / SAFE, tensors)
    content = {"architectures": ["BertForTokenClassification"], "model_type": "bert", **asdict(config)}
    if MASKED_HEAD["bias"] in tensors:
        content["architectures"].append("BertForMaskedLM")
    names = content.pop("labels")
    content |= {"id2label": {str(n): name for n, name in enumerate(names)}}
    content |= {"label2id": {name: n for n, name in enumerate(names)}, "classify_from": FROM_CLS}
    write_json(folder / CONFIG, content)


def weight_file(folder: Path) -> Path:
    for name in (SAFE, PICKLED):
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"{folder} has no weights: expected a {SAFE} or a {PICKLED}.")


def _read_weights(folder: Path) -> dict[str, Tensor]:
    path = weight_file(folder)
    if path.name == SAFE:
        return read_safetensors(path)
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # those of pickle have no common base
        raise UserError(f"{path} cannot be read as weights alone ({_short(error)}): fetch it again.") from None
    if not isinstance(weights, dict) or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise UserError(f"{path} is not a set of named weights: fetch it again.")
    return weights


def _named_as_today(weights: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Old files have gamma and beta in norms, and files of a body alone have no prefix."""
    for name, tensor in weights.items():
        for old, new in ((".gamma", ".weight"), (".beta", ".bias"), ("predictions.decoder.bias", "predictions.bias")):
            name = name.removesuffix(old) + new if name.endswith(old) else name
        yield f"bert.{name}" if name.startswith(("embeddings.", "encoder.")) else name, tensor


def _short(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120].rstrip(" .:")
