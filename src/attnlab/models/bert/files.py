"""BERTs as Hugging Face folders: read with old names and new, written so that `transformers` reads them.

The lab keeps queries, keys and values in one matrix and calls things by its own names; a file has the names of
`transformers`. Weights missing from a file start at random, surplus ones are ignored; both are reported in
`weight_report`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from attnlab.base.console import say
from attnlab.base.errors import UserError, first_line
from attnlab.base.files import read_json, write_bytes, write_text
from attnlab.base.machine.facts import is_out_of_memory
from attnlab.data.tokenizers.wordpiece_files import read_tokenizer
from attnlab.models.bert.config import SOFTMAX, BertConfig, read_config

NAMES = (  # transformers' name, the lab's; left to right for reading, right to left for writing
    ("embeddings.word_embeddings.", "words."),
    ("embeddings.position_embeddings.", "places."),
    ("embeddings.token_type_embeddings.", "types."),
    ("embeddings.LayerNorm.", "embedding_norm."),
    ("encoder.layer.", "layers."),
    (".attention.output.LayerNorm.", ".mixer_norm."),
    (".attention.output.dense.", ".mixer.output."),
    (".intermediate.dense.", ".mlp.wide."),
    (".output.LayerNorm.", ".mlp_norm."),
    (".output.dense.", ".mlp.output."),
    ("cls.predictions.transform.dense.", "masked.dense."),
    ("cls.predictions.transform.LayerNorm.", "masked.norm."),
    ("cls.predictions.decoder.", "masked.decoder."),
)
OLD = {".gamma": ".weight", ".beta": ".bias", "cls.predictions.bias": "cls.predictions.decoder.bias"}
SEPARATE = re.compile(r"(layers\.\d+\.)attention\.self\.(query|key|value)\.(weight|bias)")
TOGETHER = re.compile(r"(.*layers\.\d+\.)mixer\.projections\.qkv\.(weight|bias)")
HEADS = ("cls.", "masked.", "classifier.")
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class WeightReport:
    """Which weights a folder did not have, and which of its weights were not used."""

    folder: str
    new: tuple[str, ...]
    """Weights that the file does not have, or not in the right shape: they start at random."""
    unused: tuple[str, ...]
    """Weights of the file that this model does not have, by the names in the file."""

    def sentence(self) -> str:
        new, unused = _parts(self.new), _parts(self.unused)
        parts = [f"new, untrained: {', '.join(new)}"] if new else []
        parts += [f"not used: {', '.join(unused)}"] if unused else []
        return f"{self.folder}: {'; '.join(parts)}." if parts else ""


class Pretrained(nn.Module):
    """A model with a configuration that can be read from a folder and written to one."""

    architectures: ClassVar[tuple[str, ...]]
    """The classes of `transformers` that load the saved weights; "classifier": see `_classifier_architecture`."""
    weight_report: WeightReport | None = None

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def from_pretrained(cls, folder: str | Path, **changes: Any) -> Self:
        """The model in a folder; `changes` are fields of the configuration, such as labels=5."""
        folder = Path(folder)
        raw = _config_file(folder)
        config = read_config(folder / "config.json", raw, changes)
        _check_vocabulary(folder, config)
        weights, names = _to_lab(_read_weights(folder), prefix="" if cls.architectures == ("BertModel",) else "bert.")
        if config.layers > len(weights):
            raise UserError(f"{folder / 'config.json'} names {config.layers:,} layers, and the weights have fewer.")
        try:
            model = cls(config)
        except (TypeError, RuntimeError, OverflowError) as error:
            if is_out_of_memory(error):
                raise
            raise UserError(f"{folder / 'config.json'}: no model can be built so ({first_line(error)}).") from None
        trained_on = raw.get("classify_from") or (
            "pooler" if "BertForSequenceClassification" in (raw.get("architectures") or []) else None
        )
        if trained_on != config.classify_from:  # a classifier of other vectors, or of single words
            weights = {name: tensor for name, tensor in weights.items() if not name.startswith("classifier.")}
        model.weight_report = _load(model, weights, names, folder)
        if sentence := model.weight_report.sentence():
            say(sentence)
        return model.eval()

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors, the weights first: a folder with a config is complete."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        architectures = [_classifier_architecture(self.config) if a == "classifier" else a for a in self.architectures]
        write_bytes(folder / "model.safetensors", save(_to_file(self), metadata={"format": "pt"}))
        config = self.config.to_hugging_face(architectures)
        write_text(folder / "config.json", json.dumps(config, indent=2) + "\n")

    def initialise(self) -> None:
        """Normal weights, zero biases; norms and other parameters keep their own initial values."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.deviation)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())


def _classifier_architecture(config: BertConfig) -> str:
    """A linear layer on last vectors is what `transformers` calls token classification: [CLS]'s logits are ours."""
    return "BertForSequenceClassification" if config.classify_from == "pooler" else "BertForTokenClassification"


def _config_file(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give one with config.json and model.safetensors in it.")
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder} has no config.json: give the folder of a BERT.")
    return read_json(folder / "config.json")


def _check_vocabulary(folder: Path, config: BertConfig) -> None:
    if (folder / "vocab.txt").is_file() or (folder / "tokenizer.json").is_file():
        pieces = len(read_tokenizer(folder))
        if pieces > config.vocabulary:
            raise UserError(
                f"the vocabulary in {folder} has {pieces} pieces, the weights have {config.vocabulary}: "
                "they are not from the same checkpoint."
            )


def _read_weights(folder: Path) -> Weights:
    """By the names in the file. A .bin file is unpickled as tensors only: no code in it is run."""
    new, old = folder / "model.safetensors", folder / "pytorch_model.bin"
    try:
        if new.is_file():
            return load_file(new)
        if old.is_file():
            return torch.load(old, map_location="cpu", weights_only=True)
    except (SafetensorError, RuntimeError, OSError, EOFError, ValueError) as error:
        raise UserError(f"the weights in {folder} cannot be read ({first_line(error)}): fetch them again.") from None
    except Exception as error:  # pickle's own errors share no base class
        raise UserError(f"{old} contains more than weights ({first_line(error)}): it is not read.") from None
    raise UserError(f"{folder} has no weights: expected a model.safetensors or a pytorch_model.bin.")


def _to_lab(file: Weights, prefix: str) -> tuple[Weights, dict[str, tuple[str, ...]]]:
    """The weights by the lab's names, and for each the names it has in the file."""
    weights: Weights = {}
    names: dict[str, tuple[str, ...]] = {}
    separate: dict[str, dict[str, tuple[str, Tensor]]] = {}
    for name, tensor in file.items():
        lab = _lab_name(name)
        if lab.endswith("position_ids"):  # 0, 1, 2 …, stored in old files
            continue
        if match := SEPARATE.fullmatch(lab):
            layer, part, kind = match.groups()
            separate.setdefault(f"{layer}mixer.projections.qkv.{kind}", {})[part] = (name, tensor)
        else:
            lab = lab if lab.startswith(HEADS) else prefix + lab
            weights[lab], names[lab] = tensor, (name,)
    for lab, parts in separate.items():
        if len(parts) == 3:
            chosen = [parts[part] for part in ("query", "key", "value")]
            weights[prefix + lab] = torch.cat([tensor for _, tensor in chosen])
            names[prefix + lab] = tuple(name for name, _ in chosen)
    return weights, names


def _lab_name(name: str) -> str:
    name = name.removeprefix("bert.")
    for old, new in OLD.items():
        name = name.removesuffix(old) + new if name.endswith(old) else name
    for file_name, lab_name in NAMES:
        name = name.replace(file_name, lab_name)
    return name


def _to_file(model: Pretrained) -> Weights:
    """The weights by the names of `transformers`. Tied weights are written once."""
    out: Weights = {}
    separate = model.config.attention in SOFTMAX
    for name, tensor in model.state_dict().items():
        if name == "masked.decoder.weight" and model.config.tied:
            continue
        tensor = tensor.detach().cpu().contiguous()
        if separate and (match := TOGETHER.fullmatch(name)):
            layer, kind = match.groups()
            for part, rows in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                out[_file_name(f"{layer}attention.self.{part}.{kind}")] = rows.contiguous()
        else:
            out[_file_name(name)] = tensor
    if "cls.predictions.decoder.bias" in out:  # one bias with two names: versions of transformers differ
        out["cls.predictions.bias"] = out["cls.predictions.decoder.bias"].clone()
    return out


def _file_name(name: str) -> str:
    for file_name, lab_name in reversed(NAMES):
        name = name.replace(lab_name, file_name)
    return name


def _load(model: Pretrained, weights: Weights, names: dict[str, tuple[str, ...]], folder: Path) -> WeightReport:
    expected = model.state_dict()
    tied = {"masked.decoder.weight"} if model.config.tied else set()
    fitting: Weights = {}
    for name, tensor in weights.items():
        if name not in expected or name in tied:
            continue
        if tensor.shape == expected[name].shape:
            fitting[name] = tensor
        elif not name.startswith("classifier."):  # a classifier for another number of classes is not used
            raise UserError(
                f"{names[name][0]} in {folder} is {tuple(tensor.shape)}, expected "
                f"{tuple(expected[name].shape)} by config.json: weights and config are not from the same checkpoint."
            )
    new = tuple(name for name in expected if name not in fitting and name not in tied)
    missing = [name for name in new if not _may_be_missing(name, model.config)]
    if missing:
        raise UserError(
            f"the weights in {folder} lack {_file_name(missing[0])}: the file is incomplete, or of another model."
        )
    model.load_state_dict(fitting, strict=False)
    used = {file for name in (*fitting, *tied) for file in names.get(name, ())}
    return WeightReport(str(folder), new, tuple(sorted({n for group in names.values() for n in group} - used)))


def _may_be_missing(name: str, config: BertConfig) -> bool:
    """Heads and pooler are often not saved; a mixer other than BERT's own cannot be in the file."""
    head = name.startswith(HEADS) or "pooler." in name
    return head or (".mixer." in name and config.attention not in SOFTMAX)


def _parts(names: Iterable[str]) -> list[str]:
    """`pooler.dense.weight`, `bert.layers.3.mixer.w` to pooler, attention: names for people, each once."""
    parts: dict[str, None] = {}
    for name in names:
        name = name.removeprefix("bert.")
        if name.startswith(("masked.", "cls.predictions.")):
            parts["head of masked words"] = None
        elif name.startswith("cls.seq_relationship."):
            parts["next-sentence head"] = None
        elif ".mixer." in name or ".attention." in name:
            parts["attention"] = None
        else:
            parts[name.split(".")[0]] = None
    return list(parts)
